"""The tables in time: alembic's environment and one file a version."""
