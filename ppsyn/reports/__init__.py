"""Pages that may be published: the report of a release and its paid figures, made from released values alone."""
