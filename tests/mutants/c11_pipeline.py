"""Faults of what the pipeline tells: to Prefect, to stores that are not private, in errors."""

from mutants.fault import Fault

STEP = "tasks/step.py"

FAULTS = (
    Fault(
        "the text of an unforeseen error is told",
        "C11",
        STEP,
        '                f"{type(error).__name__} in {function.__name__};',
        '                f"{type(error).__name__} ({error}) in {function.__name__};',
        "It may quote a row, and Prefect keeps it.",
        "test_c11_no_text_of_a_foreign_error_gets_out",
    ),
    Fault(
        "an error keeps what led to it",
        "C11",
        STEP,
        "        failure.__cause__ = failure.__context__ = None\n",
        "        failure.__context__ = None\n",
        "Prefect logs the whole chain.",
        "test_c11_our_own_errors_pass_without_what_led_to_them",
    ),
    Fault(
        "a panic is not sealed",
        "C11",
        STEP,
        "        except BaseException as error:",
        "        except Exception as error:",
        "The panic of a library in Rust is no Exception, and may quote a row.",
        "test_c11_no_text_of_a_panic_gets_out",
    ),
    Fault(
        "the text of an unforeseen error is kept with the records",
        "C11",
        STEP,
        "        store = open_store(ref.private)\n",
        "        store = open_store(ref.root)\n",
        "The store of records and accounts is not private.",
        "test_c11_the_details_of_a_foreign_error_are_in_the_private_store_alone",
    ),
    Fault(
        "Prefect keeps the results of private tasks",
        "C11",
        STEP,
        "            persist_result=False,\n",
        "            persist_result=True,\n",
        "What a task returns is written to Prefect's own storage.",
        "test_c11_prefect_keeps_and_repeats_nothing_of_a_task",
    ),
    Fault(
        "Prefect repeats tasks that spend",
        "C11",
        STEP,
        "            retries=0,\n",
        "            retries=1,\n",
        "That a task was repeated tells that it failed, and a run goes on by being resumed alone.",
        "test_c11_prefect_keeps_and_repeats_nothing_of_a_task",
    ),
    Fault(
        "a task is not sealed",
        "C11",
        STEP,
        "        )(sealed(function))\n",
        "        )(function)\n",
        "The text of an error that meets it becomes the state of the run.",
        "test_c11_every_task_is_sealed",
    ),
    Fault(
        "the ingest task returns how many fragments there are",
        "C11",
        "tasks/release.py",
        '''def ingest(ref: RunRef) -> None:
    """Read the private table in batches, check it, and keep it as codes in the private store."""
    preflight.snapshot(ref)
''',
        '''def ingest(ref: RunRef) -> int:
    """Read the private table in batches, check it, and keep it as codes in the private store."""
    preflight.snapshot(ref)
    return len(open_store(ref.private).keys())
''',
        "It tells how many rows there are, about, to Prefect.",
        "test_c11_a_task_that_sees_the_table_returns_nothing",
    ),
    Fault(
        "the error of a source tells how many rows were read",
        "C11",
        "ppsyn/data/sources/batches.py",
        """    while True:
        with translated(broken, to=SourceError, message=rule):
            frame = next(frames, None)
        if frame is None:
            return
        yield frame
""",
        """    read = 0
    while True:
        with translated(broken, to=SourceError, message=f"{rule} {read} rows were read."):
            frame = next(frames, None)
        if frame is None:
            return
        read += len(frame)
        yield frame
""",
        "The number of rows is private.",
        "test_c11_the_error_of_a_source_is_the_same_however_much_of_it_was_read",
    ),
    Fault(
        "a refusal tells how many rows",
        "C11",
        "ppsyn/data/encoding/table.py",
        "            raise refusal_of(column)\n",
        "            refusal = refusal_of(column)\n"
        "            raise type(refusal)(column.name, f'{refusal.rule} in {(codes[column.name] < 0).sum()} rows')\n",
        "How many rows have a value is an exact count.",
        "test_c11_a_refusal_is_the_same_however_many_rows_are_refused_and_wherever_they_stand",
    ),
    Fault(
        "as many parts as there are fragments",
        "C11",
        "ppsyn/runs/run.py",
        "Spread(snapshot, self.ref.runtime.part_count, self._work)",
        "Spread(snapshot, len(snapshot.fragments), self._work)",
        "The number of Dask tasks tells how many rows there are.",
        "test_c11_a_pass_has_as_many_parts_as_the_settings_say_however_many_rows_there_are",
    ),
    Fault(
        "a table is read again when its run goes on",
        "C11",
        "ppsyn/runs/preflight.py",
        " or is_whole(private, folder, record.table):\n",
        ":\n",
        "Whether that fails, and how long it takes, tells whether the table has changed.",
        "test_c11_whether_the_table_has_changed_since_a_run_began_changes_nothing",
    ),
    Fault(
        "the codes stay when a release is published",
        "C11",
        "ppsyn/releases/writer.py",
        "    run.private.delete(private_folder(run.ref.run))\n",
        "",
        "They are kept for longer than the run lasts.",
        "test_c11_nothing_private_is_left_when_a_release_is_published",
    ),
    Fault(
        "ids of persons are kept with the codes",
        "C11",
        "ppsyn/data/ingest.py",
        "                bounder.add(batch.frame[person.column])\n",
        "                bounder.add(batch.frame[person.column])\n"
        '                shelf.write(f"ids/{number}", repr(batch.frame[person.column].tolist()).encode())\n',
        "The private store holds codes, not values.",
        "test_c11_ids_of_persons_are_not_kept_with_the_codes",
    ),
    Fault(
        "the error of a store names a private object",
        "C11",
        "ppsyn/storage/local.py",
        '    return "/".join(parts[: parts.index(_PRIVATE) + 1]) if is_private(key) else key\n',
        '    return "/".join(parts)\n',
        "The number of a fragment tells how many rows there are.",
        "test_c11_no_call_to_a_store_that_refuses_names_a_private_object",
    ),
    Fault(
        "others on the machine may read private files",
        "C11",
        "ppsyn/storage/local.py",
        "_FOLDER_MODE, _FILE_MODE = 0o700, 0o600\n",
        "_FOLDER_MODE, _FILE_MODE = 0o755, 0o644\n",
        "Codes of rows and exact counts are their owner's alone.",
        "test_c11_runs_accounts_and_private_files_are_their_owners_alone_and_releases_follow_the_umask",
    ),
)
