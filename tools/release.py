"""`make release VERSION=0.2.0`: the version, its changes, one commit, one tag.

Refuses with a sentence where something is not ready; docs/release.md has the
checklist before and after. Nothing leaves this machine: pushing is yours.
"""

import re
import subprocess
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def with_version(pyproject: str, version: str) -> str:
    """pyproject.toml with the new version.

    Raises:
        ValueError: it is none, or not above the present one.
    """
    found = re.search(r'^version = "(\d+\.\d+\.\d+)"$', pyproject, re.MULTILINE)
    assert found is not None
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ValueError(f"{version!r} is no version: write it as 0.2.0.")
    numbers = [tuple(map(int, one.split("."))) for one in (found[1], version)]
    if numbers[1] <= numbers[0]:
        raise ValueError(f"{version} does not come after {found[1]}.")
    return pyproject.replace(found[0], f'version = "{version}"', 1)


def with_changes(changelog: str, version: str, day: str) -> str:
    """CHANGELOG.md with what stood under *Next* under the version.

    Raises:
        ValueError: nothing stands there.
    """
    head, mark, rest = changelog.partition("## Next\n")
    changes, _, _ = rest.partition("\n## ")
    if not mark or not changes.strip():
        raise ValueError("CHANGELOG.md says nothing under '## Next'.")
    return f"{head}## Next\n\n## {version} · {day}\n{rest}"


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("Say which version: make release VERSION=0.2.0")
    version = sys.argv[1]
    pyproject, changelog = ROOT / "pyproject.toml", ROOT / "CHANGELOG.md"
    if git("status", "--porcelain"):
        sys.exit("There are changes that are not committed: commit them first.")
    if f"v{version}" in git("tag", "--list").split():
        sys.exit(f"The tag v{version} is there already.")
    try:
        new = {
            pyproject: with_version(pyproject.read_text(), version),
            changelog: with_changes(
                changelog.read_text(), version, date.today().isoformat()
            ),
        }
    except ValueError as error:
        sys.exit(str(error))
    if subprocess.run(
        [BIN / "course", "build", "--check"], cwd=ROOT
    ).returncode:
        sys.exit("Something is stale: see above.")
    for path, text in new.items():
        path.write_text(text)
    git("commit", "--all", f"--message=Version {version}")
    git("tag", "--annotate", f"--message=Version {version}", f"v{version}")
    print(f"Version {version} is committed and tagged v{version}.")
    print(f"Push it with: git push origin HEAD v{version}")
    print("Then docs/release.md, 'After the tag'.")


if __name__ == "__main__":
    main()
