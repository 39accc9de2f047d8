"""What every writer does, whatever it writes.

    attempts       tried again while others win, a bounded number of times, waiting for them in between
    candidates     what an attempt is planned on; forks; the tables it changes → a PreparedCommit
    checker        the rules over the whole graph: what is new together with what stays stored
    staged_files   files that nothing names yet: owned until the commit protocol has them
    indexes        those that the schema asks for, built as a write of its own
    after          what follows a commit, which stands whatever becomes of that

A writer supplies an attempt and a rule; everything else stands here once:

    def attempt() -> Report:
        with staging(store) as stage, StagedFiles(store) as files:
            base = capture(store, branch)                         # what it is planned on
            fork_first(store, base.snapshot, tables)              # on a branch
            files.add([stage_rows(…), …])                         # or addresses of rows to mask, which are no files
            …                                                     # checks: WriteChecker, probes, rules of its own
            writes = [TableWrite(entry, branch, TableChange(…))]
            published = files.commit(candidate(store, request, base, writes, read))

    report = in_attempts(store, branch, attempt, again)           # again: which losses are the caller's
    return after(store, branch, report, "load")
"""
