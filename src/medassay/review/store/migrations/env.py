"""How alembic reaches the database: by the engine that `open_database` gives it."""

from alembic import context

from medassay.review.store.schema import Base

with context.config.attributes["engine"].begin() as connection:
    context.configure(
        connection=connection, target_metadata=Base.metadata, render_as_batch=True
    )
    context.run_migrations()
