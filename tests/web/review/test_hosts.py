"""The review app under names that are not this machine's."""

import http.client


def status(desk, host, method="GET", path="/login", origin=""):
    connection = http.client.HTTPConnection(desk.url.removeprefix("http://"), timeout=10)
    headers = {"Host": host} | ({"Origin": origin} if origin else {})
    connection.request(method, path, headers=headers, body="" if method == "POST" else None)
    found = connection.getresponse()
    found.read()
    connection.close()
    return found.status


def test_without_url_only_the_names_of_this_machine_are_served(desk):
    port = desk.url.rpartition(":")[2]
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", "127.0.0.1"):
        assert status(desk, host) == 200, host
    for host in (
        f"evil.example:{port}",
        "evil.example",
        "",
        "127.0.0.1.evil.example",
        "[::bad",
    ):
        assert status(desk, host) in (400, 403), host
        # As a page of that name would send it.
        assert status(desk, host, "POST", origin=f"http://{host}") in (400, 403), host
