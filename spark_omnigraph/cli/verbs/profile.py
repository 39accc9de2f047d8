"""The verbs that propose a schema from data: `profile`, and `init --from`."""

from __future__ import annotations

from spark_omnigraph.cli.files import whole_file
from spark_omnigraph.cli.verb import Job, VerbOutcome
from spark_omnigraph.graph.profile.profile import Profile, propose_schema
from spark_omnigraph.words import counted


def profile_files(job: Job) -> VerbOutcome:
    """The proposal on standard output, or in a file."""
    config = job.config
    found = propose(job)
    if config.output is None:
        for line in found.schema.removesuffix("\n").split("\n"):
            job.emit(line)
    else:
        with whole_file(config.output, job.host.storage_options(config)) as file:
            file.write(found.schema)
    return VerbOutcome(result={"rows": dict(found.rows), "output": config.output}, warnings=found.left_out)


def propose(job: Job) -> Profile:
    """The schema that the files of a job propose."""
    config = job.config
    found = propose_schema(config.input, config.input_format, job.host.storage_options(config))
    for name, rows in found.rows.items():
        job.log.info("%s: %s", name, counted(rows, "row"))
    return found
