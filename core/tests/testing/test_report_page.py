"""The page and the badge of a report: whole in themselves, and nothing of the report is taken as markup."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import fields, replace
from html.parser import HTMLParser

from trunnion.testing.report import LawReport, Report
from trunnion.testing.report_page import badge_endpoint, badge_svg, html_page

EVIL = "<script>alert('\"&')</script>"
LAWS = (
    LawReport(id="L1", status="held", sentence="It holds.", examples=15, calls={"call": 3}, digest="d1"),
    LawReport(id="L2", status="failed", sentence="It fails.", text="what arrived"),
)
REPORT = Report(
    backend="acme", distribution="trunnion-acme 1", capabilities=("cluster",), tier="sim", seed=0, examples=None,
    thorough=False, suite="5", versions={"python": "3"}, date="2026-01-01", laws=LAWS,
)  # fmt: skip


class Reading(HTMLParser):
    """Every tag and its attributes; each that is opened is closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = set(), [], ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            assert name in ("lang", "charset", "class", "href", "id")
            assert name != "href" or value.startswith("#")
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_page_says_what_became_of_each_law():
    page = Reading(html_page(REPORT))
    assert "script" not in page.tags
    for said in ("acme: 1 held, 1 failed", "It holds.", "what arrived", REPORT.digest, "python 3"):
        assert said in page.text


def test_code_in_a_sentence_is_shown_as_code():
    law = LawReport(id="O2", status="held", sentence="Under ``out=`` a <b> returns.")
    assert "Under <code>out=</code> a &lt;b&gt; returns." in html_page(replace(REPORT, laws=(law,)))


def test_nothing_of_the_report_is_taken_as_markup():
    law = LawReport(
        **{one.name: EVIL for one in fields(LawReport) if one.type == "str"},
        calls={EVIL: 1},
        requires=(EVIL,),
    )
    texts = {one.name: EVIL for one in fields(Report) if one.type == "str"}
    evil = replace(REPORT, **texts, laws=(law,), versions={EVIL: EVIL}, capabilities=(EVIL,))
    page = Reading(html_page(evil))
    assert "script" not in page.tags
    assert EVIL in page.text


def test_the_badge_says_how_many_laws_held_or_did_not():
    good = replace(REPORT, laws=LAWS[:1])
    for report, said in ((good, "1 laws held"), (REPORT, "1 of 2 laws broken")):
        title = ET.fromstring(badge_svg(report))[0]  # noqa: S314 - a text of our own
        assert title.text == f"trunnion: {said}"
    endpoint = json.loads(badge_endpoint(good))
    assert endpoint["schemaVersion"] == 1
    assert endpoint["message"] == "1 laws held"
    assert endpoint["color"] != json.loads(badge_endpoint(REPORT))["color"]
