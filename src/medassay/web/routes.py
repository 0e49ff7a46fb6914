"""`ROUTES`: every page and endpoint of the review app, and who may use it.

This table is what the tests check, cell by cell.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from medassay.review.store.accounts import ADMIN, CREATOR
from medassay.web import api
from medassay.web.pages import adjudicate, admin, audit, coordinator, results, reviewer, sign_in
from medassay.web.request_context import ACCOUNT, ANYONE

R, A, C, M, U = "reviewer", "adjudicator", "coordinator", "maintainer", "auditor"
_S = "/s/{study}"
_API = "/api/s/{study}"


class Route(msgspec.Struct, frozen=True):
    """One method of one path.

    `may` are the roles of which one is needed, in the study of the path if it names one.

    `keeps_input`: the page itself answers a request whose token has expired, and shows again what
    was filled in.
    """

    method: str
    path: str
    answer: Callable[..., Any]
    may: frozenset[str]
    keeps_input: bool = False
    status: int = 200

    @property
    def name(self) -> str:
        """Return what the route is found by."""
        return f"{self.method} {self.path}"


def _route(method: str, path: str, answer: Callable[..., Any], *may: str, **more: Any) -> Route:
    return Route(method, path, answer, frozenset(may), **more)


ROUTES: tuple[Route, ...] = (
    # Everybody.
    _route("GET", "/login", sign_in.sign_in_page, ANYONE),
    _route("POST", "/login", sign_in.sign_in, ANYONE, keeps_input=True),
    _route("GET", "/invite/{token}", sign_in.invitation_page, ANYONE),
    _route("POST", "/invite/{token}", sign_in.accept_invitation, ANYONE, keeps_input=True),
    _route("GET", "/language/{language}", sign_in.speak, ANYONE),
    _route("GET", "/help/keys", sign_in.keys_page, ANYONE),
    _route("GET", "/healthz", api.healthz, ANYONE),
    # Whoever is signed in.
    _route("GET", "/", sign_in.home, ACCOUNT),
    _route("POST", "/logout", sign_in.sign_out, ACCOUNT),
    _route("GET", "/me", sign_in.settings_page, ACCOUNT),
    _route("POST", "/me", sign_in.save_settings, ACCOUNT),
    _route("GET", "/api/studies", api.my_studies, ACCOUNT),
    # Reviewers: their own assignments, and nothing of others.
    _route("GET", _S, reviewer.to_study, R, A, C, M, U),
    _route("GET", f"{_S}/", reviewer.study_page, R, A, C, M, U),
    _route("GET", f"{_S}/i/{{n}}", reviewer.item_page, R),
    _route("POST", f"{_S}/i/{{n}}", reviewer.send_item, R, keeps_input=True),
    _route("GET", f"{_S}/i/{{n}}/graph.svg", reviewer.graph_picture, R),
    _route("GET", f"{_S}/done", reviewer.done_page, R),
    _route("GET", f"{_S}/feedback", reviewer.feedback_page, R),
    _route("GET", f"{_S}/mine.json", reviewer.own_json, R),
    _route("GET", f"{_S}/mine.csv", reviewer.own_csv, R),
    _route("GET", f"{_API}/i/{{n}}", api.item, R),
    _route("PUT", f"{_API}/i/{{n}}/draft", api.save_draft, R),
    _route("POST", f"{_API}/i/{{n}}/review", api.submit, R, status=201),
    # Adjudicators decide, without names; maintainers check after closing.
    _route("GET", f"{_S}/adjudicate/", adjudicate.tickets_page, A, M),
    _route("GET", f"{_S}/adjudicate/{{n}}", adjudicate.ticket_page, A, M),
    _route("POST", f"{_S}/adjudicate/{{n}}", adjudicate.settle, A, M),
    _route("GET", f"{_S}/entries/{{n}}/graph.svg", adjudicate.entry_picture, A, C, M, U),
    # Coordinators: counts and agreement, no reviews before closing.
    _route("GET", "/studies/new", coordinator.new_study_page, CREATOR),
    _route("POST", "/studies/new", coordinator.make_study, CREATOR),
    _route("GET", f"{_S}/progress", coordinator.progress_page, C, M, U),
    _route("POST", f"{_S}/progress", coordinator.act, C),
    _route("POST", f"{_S}/import", coordinator.bring_in, C, M),
    _route("GET", f"{_S}/agreement", results.agreement_page, C, U),
    _route("GET", f"{_S}/items", results.items_page, C, U),
    _route("GET", f"{_S}/items/{{n}}", results.reviews_page, C, M, U),
    _route("GET", f"{_S}/trends", results.trends_page, C, U),
    _route("GET", f"{_S}/trends.svg", results.trend_picture, C, U),
    _route("GET", f"{_S}/close", coordinator.close_page, C),
    _route("POST", f"{_S}/close", coordinator.close_study, C),
    _route("GET", f"{_S}/export.json", results.export_json, C, M, U),
    _route("GET", f"{_S}/export.csv", results.export_csv, C, M, U),
    _route("GET", f"{_S}/log", coordinator.log_page, C, U),
    _route("GET", f"{_API}/progress", api.progress, C, U),
    _route("GET", f"{_API}/agreement", api.agreement, C, U),
    _route("GET", f"{_API}/export", api.export, C, M, U),
    # Auditors and admins.
    _route("GET", "/audit", audit.audit_page, U, ADMIN),
    _route("GET", f"{_S}/window", audit.window_page, U),
    _route("POST", f"{_S}/window", audit.open_window, U),
    _route("GET", "/admin/users", admin.users_page, ADMIN),
    _route("POST", "/admin/users", admin.act, ADMIN),
)
