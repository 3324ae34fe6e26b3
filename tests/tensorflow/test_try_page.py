"""The page to try a model, in a real browser."""

import json
import shutil

import pytest

from browser import Browser
from serving import Served
from test_serving import models  # noqa: F401
from yard import wait_for


@pytest.fixture(params=("2.15",))
def version(request):
    return request.param


def test_a_digit_is_drawn_and_the_version_changes_by_itself(yard, version, models):
    base = yard.home / "conv"
    shutil.copytree(models / "conv", base)
    with Browser(yard.home / "browser", yard.env) as browser:
        with Served(yard, version, base, "--poll", "100ms") as served:
            browser.open(f"http://{served.rest}/")
            wait_for(lambda: browser.text("#version") == "version 1", "the version is shown", 60)
            browser.draw("canvas", [(0.3, 0.2), (0.3, 0.5), (0.7, 0.5), (0.6, 0.2), (0.6, 0.8)])
            wait_for(lambda: browser.run("document.querySelectorAll('#answer .row').length") == 10, "scores as bars", 30)
            best = browser.text("#answer .row.best span")
            # The class and the highest score are one answer.
            assert browser.run("[...document.querySelectorAll('#answer .value')].map(e => e.textContent)") == [best]
            assert browser.text("#answer .hint") == "answered by version 1"
            shutil.copytree(base / "1", base / "2")
            wait_for(lambda: browser.text("#version") == "version 2", "the new version is shown", 60)
            wait_for(lambda: browser.text("#answer .hint") == "answered by version 2", "and has answered", 30)
            assert browser.run("document.querySelector('#trouble').hidden")
        wait_for(lambda: "does not answer" in browser.text("#trouble"), "a readable error", 30)


def test_hostile_names_and_values_are_text_and_never_markup(yard, version, models):
    with Browser(yard.home / "browser", yard.env) as browser, Served(yard, version, models / "hostile") as served:
        policy = {name.lower(): value for name, value in head(served)}["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        browser.open(f"http://{served.rest}/")
        wait_for(lambda: browser.text("#version") == "version 1", "the version is shown", 60)
        bad = "<img src=x onerror=\"document.title='owned'\">"
        browser.run(f"document.querySelector('#inputs input').value = {json.dumps(bad)}; document.querySelector('#ask').click()")
        wait_for(lambda: browser.text("#answer .value") == bad, "the value is shown as it is", 30)
        assert browser.text("#answer h2") == bad
        assert bad in browser.run("[...document.querySelector('#signature').options].map(o => o.textContent)")
        assert browser.run("document.images.length") == 0 and browser.run("document.title") == "Try a model"


def head(served):
    import http.client
    connection = http.client.HTTPConnection(served.rest, timeout=30)
    connection.request("GET", "/")
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.getheaders()
