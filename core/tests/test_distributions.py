"""What the metadata say, of distributions that are written for the test."""

from __future__ import annotations

import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
import pytest

from trunnion import distributions
from trunnion.distributions import (
    announced,
    canonical,
    distribution_of,
    installation_hint,
    installed,
    name_and_version,
    packages,
    requirements,
    version_of,
)
from trunnion.errors import BackendUnavailableError
from trunnion.registry import Registry
from trunnion.storage import remembered

if TYPE_CHECKING:
    from collections.abc import Callable

    Install = Callable[..., Path]

CORE = (
    'trunnion-cc[all]==1; extra == "c-c"',
    "trunnion-cc==1; extra == 'all'",
    "trunnion-acme-one (>=1.0) ; python_version > '3' and extra == 'acme-one'",
    "rich>=13; extra == 'cli'",
    "trunnion-other; extra == 'more'",
)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a distribution that is nothing but its metadata, into a folder that is searched first."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(name: str, *needs: str, version: str = "1.0") -> Path:
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        text = "\n".join([*lines, *(f"Requires-Dist: {need}" for need in needs)])
        (folder / "METADATA").write_text(f"{text}\n", encoding="utf-8")
        return folder

    return write


def test_names_are_compared_in_one_form() -> None:
    assert canonical("Acme_One.Two--x") == "acme-one-two-x"


def test_the_first_of_two_distributions_is_the_one_that_python_imports(install: Install) -> None:
    before = metadata.version("pluggy")
    install("Pluggy", version="99.0")
    assert before != "99.0"
    assert installed()["pluggy"].version == "99.0"


def test_damaged_metadata_hurt_nobody(install: Install) -> None:
    (install("trunnion-broken") / "METADATA").write_text("\n", encoding="utf-8")
    assert "trunnion" in installed()


def test_metadata_that_are_no_text_hurt_nobody(install: Install) -> None:
    """Of an installation that was broken off, or in another encoding: the name of their folder is left."""
    folder = install("trunnion-broken", "pluggy")
    (folder / "METADATA").write_bytes(b"Name: trunnion-broken\nVersion: 2.0\nAuthor: Ren\xe9\n")
    (folder / "top_level.txt").write_bytes(b"Ren\xe9")
    (folder / "RECORD").write_bytes(b"Ren\xe9,,\n")
    (install("half") / "METADATA").write_bytes(b"")
    found = installed()["trunnion-broken"]
    assert name_and_version(found) == ("trunnion_broken", "1.0")
    assert version_of("trunnion-broken") == "1.0"
    assert requirements(found) == {}
    assert "pluggy" in packages()["pluggy"]
    assert "is installed and announces no" in installation_hint("broken", "backend")


def test_the_packages_are_those_of_importlib() -> None:
    theirs = {
        name: {canonical(one) for one in owners if one}
        for name, owners in metadata.packages_distributions().items()
        if name.isidentifier()
    }
    ours = {name: {*owners} for name, owners in packages().items() if name != "__pycache__"}
    assert {name: ours[name] for name in theirs} == theirs


def test_requirements_are_names_and_the_extras_that_ask_for_them(install: Install) -> None:
    install(
        "acme-thing", "Foo.Bar[x]>=1,<2", "baz; extra == 'a'", "baz>1; extra == 'b'", "q; extra == 'a'", "q"
    )
    assert requirements(installed()["acme-thing"]) == {
        "foo-bar": frozenset(),
        "baz": {"a", "b"},
        "q": frozenset(),
    }
    install("acme-bare")
    assert requirements(installed()["acme-bare"]) == {}


@pytest.mark.parametrize("name", ["acme_one", "acme-one", "ACME_ONE", "acme_on"])
def test_a_plugin_of_this_project_is_installed_by_its_extra(install: Install, name: str) -> None:
    install("trunnion", *CORE)
    told = "trunnion-acme-one is not installed: pip install 'trunnion[acme-one]'"
    assert installation_hint(name, "backend") == told


def test_a_distribution_that_is_there_and_brings_none_is_told(install: Install) -> None:
    install("trunnion", *CORE)
    install("trunnion-acme-one")
    told = "trunnion-acme-one is installed and announces no backend of that name"
    assert installation_hint("acme_one", "backend") == told
    assert installation_hint("acme_on", "backend").startswith("for more: pip install 'trunnion[all]'")


@pytest.mark.parametrize("name", ["zeta", "cli", "more", "all", "", "a b\n"])
def test_of_any_other_name_the_rule_is_told(install: Install, name: str) -> None:
    """An extra of another name than what it installs brings no plugin of its name."""
    install("trunnion", *CORE)
    assert installation_hint(name, "backend").endswith("as a rule trunnion-<name>")


def announce(folder: Path, text: str) -> None:
    (folder / "entry_points.txt").write_text(text, encoding="utf-8")


def by_importlib(group: str) -> set[tuple[str, str]]:
    return {(point.name, point.value) for point in metadata.entry_points(group=group)}


def by_us(group: str) -> set[tuple[str, str]]:
    return {(point.name, point.value) for point in announced(group)}


@pytest.mark.parametrize("group", ["trunnion", "console_scripts", "pytest11", "nobody's"])
def test_the_entry_points_are_those_of_importlib(group: str) -> None:
    assert by_us(group) == by_importlib(group)


def test_of_two_distributions_of_one_name_the_first_one_s_count(
    tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce(install("acme-one", version="2.0"), "[acme]\none = first:hooks\n\n[trunnion.x]\nno = no:no\n")
    later = tmp_path / "later"
    for place, text in (
        ("Acme.One-1.0.dist-info", "one = second:hooks"),
        ("other.egg-info", "two = other:hooks"),
    ):
        (later / place).mkdir(parents=True)
        announce(later / place, f"[acme]\n{text}\n")
    monkeypatch.setattr("sys.path", [*sys.path, str(later), str(later / "nowhere")])
    assert by_us("acme") == by_importlib("acme") == {("one", "first:hooks"), ("two", "other:hooks")}
    (point,) = (one for one in announced("acme") if one.name == "one")
    assert point.dist is not None
    assert (point.dist.name, point.dist.version) == ("acme-one", "2.0")


def test_what_another_finder_finds_is_asked_of_importlib(monkeypatch: pytest.MonkeyPatch) -> None:
    class Finder:
        def find_spec(self, *_: object) -> None:
            return None

        def find_distributions(self, *_: object) -> list[metadata.Distribution]:
            return []

    assert distributions._metadata_folders() is not None
    monkeypatch.setattr("sys.meta_path", [*sys.meta_path, Finder()])
    assert distributions._metadata_folders() is None
    assert by_us("trunnion") == by_importlib("trunnion")
    assert version_of("pluggy") == metadata.version("pluggy")


def test_what_may_lie_in_an_archive_is_asked_of_importlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some.zip").write_bytes(b"")
    monkeypatch.syspath_prepend(str(tmp_path / "some.zip"))
    assert distributions._metadata_folders() is None
    assert by_us("trunnion") == by_importlib("trunnion")


@pytest.mark.parametrize("name", ["pluggy", "cuda-bindings", "torch", "apache-tvm-ffi", "trunnion"])
def test_a_version_is_that_of_importlib(name: str) -> None:
    assert version_of(name) == metadata.version(name)
    assert distribution_of(name).version == metadata.version(name)


def test_a_version_is_read_from_the_head_alone(install: Install) -> None:
    place = install("acme-two", version="3.1") / "METADATA"
    place.write_text(
        "Metadata-Version: 2.1\nName: acme-two\nSummary: a\n  b\n\nVersion: 9\n", encoding="utf-8"
    )
    assert version_of("acme-two") is None
    assert version_of("acme-nobody") is None
    with pytest.raises(metadata.PackageNotFoundError):
        distribution_of("acme-nobody")


@pytest.fixture
def another_process(
    install: Install,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[], None]:
    """Forget what this process knows. What is installed is Python's own, and old; what is kept is this test's."""
    plugin = install("acme")
    (plugin / "entry_points.txt").write_text("[acme]\none = acme:one\n")
    install("bare")
    (tmp_path / "in_place.egg-info").mkdir()
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "prefix", str(tmp_path.parent))
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: cache / name)
    monkeypatch.setattr(remembered, "_SETTLED", -(10**18))
    monkeypatch.setattr(distributions, "_WRITING", -(10**18))

    def forget() -> None:
        remembered._memory.cache_clear()
        distributions._names.cache_clear()

    forget()
    return forget


def test_another_process_lists_and_reads_nothing(
    another_process: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = announced("acme")
    assert [point.value for point in found] == ["acme:one"]
    another_process()
    for name in ("_named_in", "_read"):
        monkeypatch.setattr(distributions, name, lambda *_: pytest.fail("it is looked at again"))
    again = announced("acme")
    assert again == found
    assert [point.dist.name for point in again if point.dist is not None] == ["acme"]
    assert version_of("bare") == "1.0"


def test_the_folder_of_all_that_is_python_s_own_is_read_each_time(
    another_process: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert [point.value for point in announced("acme")] == ["acme:one"]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_damaged_entry_points_hurt_themselves_alone(
    another_process: Callable[[], None], install: Install, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    """What announces nothing is an entry point that cannot be imported: so somebody is told of it."""
    damaged = b"[scripts]\nno script\n# \xff\n[acme]\ntwo\n[other]\n\xff = \xff\n"
    (install("broken") / "entry_points.txt").write_bytes(damaged)
    if elsewhere:
        monkeypatch.setattr(sys, "prefix", "/nowhere")
    for _ in range(2):
        assert by_us("acme") == {("one", "acme:one"), ("two", "")}
        assert by_us("other") == {("\ufffd", "\ufffd")}
        another_process()


def test_damaged_entry_points_that_another_finder_finds_hurt_themselves_alone(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce(install("broken"), "[acme]\nbroken\n")
    (install("more-broken") / "entry_points.txt").write_bytes(b"[acme]\n\xff = \xff\n")
    announce(install("good"), "[acme]\none = acme:one\n")
    monkeypatch.setattr(distributions, "_searched", lambda: None)
    assert by_us("acme") == {("one", "acme:one"), ("broken", "")}
    assert {point.dist.name for point in announced("acme") if point.dist is not None} == {"good", "broken"}


def _edit(site: Path, install: Install) -> None:
    (site / "acme-1.0.dist-info" / "entry_points.txt").write_text("[acme]\ntwo = acme:two\n")


def _leave(site: Path, install: Install) -> None:
    (site / "acme-1.0.dist-info" / "entry_points.txt").write_text("[other]\ntwo = acme:two\n")


def _appear(site: Path, install: Install) -> None:
    """As setuptools does, which writes into the folder of sources that are installed as they lie there."""
    (site / "in_place.egg-info" / "entry_points.txt").write_text("[acme]\nthree = bare:three\n")


def _come_instead(site: Path, install: Install) -> None:
    shutil.rmtree(site / "bare-1.0.dist-info")
    (install("bare") / "entry_points.txt").write_text("[acme]\nthree = bare:three\n")


def _come(site: Path, install: Install) -> None:
    (install("new") / "entry_points.txt").write_text("[acme]\nfour = new:four\n")


def _go(site: Path, install: Install) -> None:
    shutil.rmtree(site / "acme-1.0.dist-info")


@pytest.mark.parametrize(
    ("change", "values"),
    [
        (_edit, {"acme:two"}),
        (_leave, set()),
        (_appear, {"acme:one", "bare:three"}),
        (_come_instead, {"acme:one", "bare:three"}),
        (_come, {"acme:one", "new:four"}),
        (_go, set()),
    ],
)
@pytest.mark.parametrize("same", [True, False], ids=["this process", "another"])
def test_what_changes_is_seen(
    another_process: Callable[[], None],
    install: Install,
    tmp_path: Path,
    change: Callable[[Path, Install], None],
    values: set[str],
    same: bool,
) -> None:
    announced("acme")
    change(tmp_path, install)
    if not same:
        another_process()
    assert {point.value for point in announced("acme")} == values


def test_what_somebody_wrote_into_old_metadata_is_seen_by_who_lists_plugins_and_by_who_names_one(
    another_process: Callable[[], None], install: Install, tmp_path: Path
) -> None:
    install("trunnion-late")
    Registry().names()
    (tmp_path / "trunnion_late-1.0.dist-info" / "entry_points.txt").write_text(
        "[trunnion]\nlate = nowhere:late\n"
    )
    assert "late" not in {backend.name for backend in Registry().backends()}
    with pytest.raises(BackendUnavailableError, match="nowhere"):
        Registry().backend("late")
    another_process()
    assert "late" in {one.name for one in Registry().unavailable()}, "and from then on it is known"
    (tmp_path / "trunnion_late-1.0.dist-info" / "entry_points.txt").unlink()
    assert "late" not in Registry().names()


def test_what_an_installer_is_still_writing_is_read_again(
    another_process: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributions, "_WRITING", 10**18)
    announced("acme")
    (tmp_path / "bare-1.0.dist-info" / "entry_points.txt").write_text("[acme]\nthree = bare:three\n")
    assert {point.value for point in announced("acme")} == {"acme:one", "bare:three"}


@pytest.mark.parametrize(
    "entry",
    [Path("/nowhere"), b"/nowhere", 3, "/a\0b", "/" + "x" * 300, "loop"],
    ids=["a path", "bytes", "a number", "NUL", "too long", "loop"],
)
def test_what_python_imports_nothing_from_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: object
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.chdir(tmp_path)
    found = announced("trunnion")
    assert found
    monkeypatch.setattr(sys, "path", [entry, *sys.path])
    assert announced("trunnion") == found


def test_of_two_of_one_name_in_one_folder_it_is_that_of_importlib(install: Install) -> None:
    """As an upgrade leaves them that was broken off."""
    for version in ("1.0", "2.0", "3.0", "2.5", "0.5"):
        install("acme-twice", version=version)
    assert version_of("acme-twice") == metadata.version("acme-twice")
