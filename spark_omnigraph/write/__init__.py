"""What every writer does, whatever it writes.

    attempts       tried again while others win, a bounded number of times, waiting for them in between
    candidates     what an attempt is planned on; forks; the changes of its tables → a PreparedCommit
    checker        the rules over the whole graph: what is new together with what stays stored
    staged_files   files that nothing names yet: owned until the commit protocol has them
    indexes        those that the schema asks for, built as a write of its own
    after          what follows a commit, which stands whatever becomes of that

A new kind of writer is one plan: a function for one attempt, and the rule by which `in_attempts` makes another. Under
`staged_files` an attempt calls `capture`, `fork_first`, stages files or finds rows to mask, checks them, and hands what
`candidate` makes of its changes, with its facts, to `files.commit`. Its report goes through `after`.
"""
