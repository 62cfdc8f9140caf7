"""Faults of a measurement: what a unit moves, how much noise hides it, and what is counted."""

from mutants.fault import Fault

CURATOR = "ppsyn/privacy/curator.py"
MECHANISMS = "ppsyn/privacy/noise.py"
REQUESTS = "ppsyn/privacy/requests.py"
CELLS = "ppsyn/privacy/partition.py"
RESIDUALS = "ppsyn/privacy/residuals.py"
KERNEL = "ppsyn/data/marginals/kernel.py"
COUNTER = "ppsyn/data/marginals/counter.py"
HELD = "ppsyn/data/marginals/cache.py"
SPREAD = "ppsyn/data/marginals/distributed.py"

DRAWN = "    return np.array(measurement(exact_counts.tolist()), np.int64), scale\n"

FAULTS = (
    Fault(
        "a measurement forgets the rows of a person",
        "C1",
        CURATOR,
        "request.rho, self._max_rows * request.sensitivity))",
        "request.rho, request.sensitivity))",
        "A person with m rows moves the counts by m; the noise hides one row.",
        "test_c1_the_declared_sensitivity_is_attained",
    ),
    Fault(
        "the noise scale without the 2 under its root",
        "C1",
        REQUESTS,
        """    scale = sensitivity / math.sqrt(2 * rho) * _SLACK
    if not math.isfinite(scale) or 2 * rho *""",
        """    scale = sensitivity / math.sqrt(4 * rho) * _SLACK
    if not math.isfinite(scale) or 4 * rho *""",
        "Noise of scale s / (2 sqrt(rho)) costs 2 rho.",
        "test_c1_noise_has_the_scale_that_the_budget_buys_for_all_rows_of_a_person",
    ),
    Fault(
        "noise is drawn whatever it costs",
        "C1",
        MECHANISMS,
        "    _check_cost(measurement.map(float(sensitivity)), rho)\n",
        "",
        "OpenDP's privacy map is no longer held against rho before the draw.",
        "test_c1_noise_that_costs_more_than_was_charged_is_not_drawn",
    ),
    Fault(
        "the noise of a measurement is drawn at 0.99 of its scale after the check",
        "C1",
        MECHANISMS,
        DRAWN,
        "    measurement = make_gaussian(*space, scale=0.99 * scale)\n" + DRAWN,
        "What is checked is not what is drawn: it costs 2% more.",
        "test_c1_what_opendp_draws_for_the_exact_counts_is_the_answer_however_far_out_it_lies",
    ),
    Fault(
        "noise is clipped at 4.5 of its scale",
        "C1",
        MECHANISMS,
        DRAWN,
        """    noisy = np.array(measurement(exact_counts.tolist()), np.int64)
    reach = int(4.5 * scale)
    return exact_counts + np.clip(noisy - exact_counts, -reach, reach), scale
""",
        "An answer at the edge of the clipped tail tells neighbours apart for certain.",
        "test_c1_what_opendp_draws_for_the_exact_counts_is_the_answer_however_far_out_it_lies",
    ),
    Fault(
        "half the noise where a count is between 10^5 and 2^40",
        "C1",
        MECHANISMS,
        DRAWN,
        """    noisy = np.array(measurement(exact_counts.tolist()), np.int64)
    is_large = (exact_counts > 10**5) & (exact_counts < 2**40)
    return np.where(is_large, exact_counts + (noisy - exact_counts) // 2, noisy), scale
""",
        "Large counts cost four times what is charged.",
        "test_c1_noise_has_its_scale_on_values_of_every_magnitude",
    ),
    Fault(
        "a float Gaussian in the place of OpenDP's",
        "C1",
        MECHANISMS,
        DRAWN,
        """    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence()))
    noise = rng.normal(0, scale, exact_counts.size)
    return exact_counts + np.rint(noise).astype(np.int64), scale
""",
        "A generator of statistics in doubles draws it: its state can be told from its output, and its tail ends.",
        "test_c1_what_opendp_draws_for_the_exact_counts_is_the_answer_however_far_out_it_lies",
    ),
    Fault(
        "noise passes through doubles",
        "C1",
        MECHANISMS,
        "np.array(measurement(exact_counts.tolist()), np.int64), scale",
        "np.array(measurement(exact_counts.tolist()), np.float64).astype(np.int64), scale",
        "Above 2^53 the answer keeps no noise in its last bits.",
        "test_c1_noise_is_added_to_whole_numbers_and_not_in_floating_point",
    ),
    Fault(
        "empty groups get no noise",
        "C1",
        MECHANISMS,
        DRAWN,
        """    noisy = np.array(measurement(exact_counts.tolist()), np.int64)
    return np.where(exact_counts == 0, 0, noisy), scale
""",
        "An exact zero tells that nobody is there.",
        "test_c1_noise_has_its_scale_on_values_of_every_magnitude",
    ),
    Fault(
        "the groups of a measurement share their noise in pairs",
        "C1",
        MECHANISMS,
        DRAWN,
        """    noisy = np.array(measurement(exact_counts.tolist()), np.int64)
    noise = noisy - exact_counts
    noise[1::2] = noise[: noise.size - noise.size % 2 : 2]
    return exact_counts + noise, scale
""",
        "The difference of two groups is told without noise.",
        "test_c1_cells_do_not_share_their_noise",
    ),
    Fault(
        "group counts are summed in doubles",
        "C1",
        CELLS,
        """        sums = np.zeros(self.count, np.int64)
        np.add.at(sums, self.groups, counts.ravel())
        return sums
""",
        "        return np.bincount(self.groups, counts.ravel(), self.count).astype(np.int64)\n",
        "Above 2^53 a row moves a count by none or by two.",
        "test_c1_group_counts_are_exact_where_doubles_are_not",
    ),
    Fault(
        "the first group counts all rows",
        "C1",
        CELLS,
        "        np.add.at(sums, self.groups, counts.ravel())\n",
        "        np.add.at(sums, self.groups, counts.ravel())\n        sums[0] = counts.sum()\n",
        "A row is counted in its group and in the first one: it moves the answer by sqrt(2).",
        "test_c1_every_cell_counts_in_one_group_and_once",
    ),
    Fault(
        "a partition takes groups out of range",
        "C1",
        CELLS,
        "        if self.groups.min() < 0 or self.groups.max() >= self.count:\n",
        "        if self.groups.max() >= self.count:\n",
        "Group -1 is the last one, under a second name.",
        "test_c1_what_does_not_cover_every_cell_once_is_no_partition",
    ),
    Fault(
        "the groups of a partition can be changed",
        "C1",
        CELLS,
        "        self.groups.flags.writeable = False\n",
        "",
        "What was checked at construction need not be what is counted.",
        "test_c1_the_groups_of_a_partition_cannot_be_changed_afterwards",
    ),
    Fault(
        "a partition need not fit its marginal",
        "C1",
        CURATOR,
        "    if counts.size != partition.cells:\n",
        "    if counts.size < partition.cells:\n",
        "Cells beyond the partition are dropped or fail after the charge.",
        "test_c1_a_partition_of_another_marginal_is_refused_and_not_charged",
    ),
    Fault(
        "the sensitivity of residuals is that of their dimensions alone",
        "C1",
        RESIDUALS,
        "math.isqrt(UNIT**2 * math.prod(axes) * degrees(axes) - 1) + 1",
        "math.isqrt(UNIT**2 * degrees(axes) ** 2 - 1) + 1",
        "A row moves the residuals by sqrt(G k), not by k.",
        "test_c1_the_declared_sensitivity_of_residuals_is_attained_but_for_its_rounding",
    ),
    Fault(
        "the sensitivity of residuals is rounded down",
        "C1",
        RESIDUALS,
        "math.isqrt(UNIT**2 * math.prod(axes) * degrees(axes) - 1) + 1",
        "math.isqrt(UNIT**2 * math.prod(axes) * degrees(axes))",
        "A row moves the residuals by a little more than is declared.",
        "test_c1_the_declared_sensitivity_of_residuals_is_attained_but_for_its_rounding",
    ),
    Fault(
        "residuals keep the total",
        "C1",
        RESIDUALS,
        "    found = boxes * counts.size + (len(axes) - 1) * counts.sum()\n",
        "    found = boxes * counts.size + len(axes) * counts.sum()\n",
        "A row moves every residual by one more.",
        "test_c1_residuals_tell_nothing_that_single_attributes_tell",
    ),
    Fault(
        "a curator of no rows",
        "C1",
        CURATOR,
        "        if max_rows < 1:\n",
        "        if max_rows < 0:\n",
        "With m = 0 there is no noise.",
        "test_c1_a_curator_is_told_of_one_row_at_least",
    ),
    Fault(
        "the kernel counts rows beyond the first 4,096 twice",
        "C1",
        KERNEL,
        "                table[cells[row] * size + column[row]] += 1\n",
        "                table[cells[row] * size + column[row]] += 1 + (start > 0)\n",
        "A row moves a count by two.",
        "test_c1_each_row_of_a_long_table_is_counted_once_wherever_it_stands",
    ),
    Fault(
        "blocks of a table in memory overlap by a row",
        "C1",
        COUNTER,
        "codes[start : start + _BLOCK_ROWS] for name",
        "codes[start : start + _BLOCK_ROWS + 1] for name",
        "The first row of every block but one is counted twice.",
        "test_c1_each_row_of_a_long_table_is_counted_once_wherever_it_stands",
    ),
    Fault(
        "the last fragment is counted twice",
        "C1",
        "ppsyn/data/snapshot.py",
        "for each in self.fragments), cliques",
        "for each in (*self.fragments, *self.fragments[-1:])), cliques",
        "A row of it moves a count by two.",
        "test_c1_counts_of_fragments_are_those_of_the_table_and_a_row_moves_one_by_one",
    ),
    Fault(
        "a part that Dask counted is added twice",
        "C1",
        SPREAD,
        "            counts += found\n",
        "            counts += found * (1 + (part == 1))\n",
        "A row of that part moves a count by two.",
        "test_c1_counts_in_parts_are_those_of_the_table_and_a_row_moves_one_by_one",
    ),
    Fault(
        "parts that Dask counts overlap",
        "C1",
        SPREAD,
        "fragments=snapshot.fragments[part::parts]",
        "fragments=snapshot.fragments[part:]",
        "A row of a late fragment is in several parts.",
        "test_c1_counts_in_parts_are_those_of_the_table_and_a_row_moves_one_by_one",
    ),
    Fault(
        "counts that were kept are taken for those of another table",
        "C1",
        HELD,
        "        if cached.of != snapshot.digest(kept):\n            return None\n",
        "",
        "What is answered is not about the encoded table that was bounded.",
        "test_c1_counts_that_were_kept_of_other_rows_are_not_used",
    ),
    Fault(
        "a part of an earlier snapshot is added",
        "C1",
        SPREAD,
        "repr((snapshot.digest(layout.cliques), part, parts))",
        "repr((layout.cliques, part, parts))",
        "A row that has moved to another fragment is counted in two parts.",
        "test_c1_a_part_that_was_counted_of_an_earlier_snapshot_is_not_added",
    ),
    Fault(
        "a part is taken for another",
        "C1",
        SPREAD,
        "repr((snapshot.digest(layout.cliques), part, parts))",
        "repr(snapshot.digest(layout.cliques))",
        "A part that is there under two numbers is added twice.",
        "test_c1_a_part_is_not_taken_for_another_nor_for_one_of_another_division",
    ),
    Fault(
        "a table of any number of rows is measured",
        "C1",
        CURATOR,
        "        counts = _check_fit(_check_rows(self._counter.counts(request.clique)), request.partition)\n",
        "        counts = _check_fit(self._counter.counts(request.clique), request.partition)\n",
        "Residuals of more rows may pass 64 bits.",
        "test_c1_a_table_of_more_rows_than_the_proof_allows_is_refused_and_not_charged",
    ),
)
