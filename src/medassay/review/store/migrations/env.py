"""How alembic reaches the database: by the engine that `open_database` gives it."""

from alembic import context
from sqlalchemy import text

from medassay.review.store.schema import Base

with context.config.attributes["engine"].begin() as connection:
    context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True)
    if connection.dialect.name == "postgresql":  # of two that start at once, one makes the tables
        connection.execute(text("SELECT pg_advisory_xact_lock(8765)"))
    context.run_migrations()
