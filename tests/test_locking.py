import subprocess
import sys
from pathlib import Path

import pytest

from hitin import InputError
from hitin.locking import locked, locked_for_now, remove_empty

TIMES = 300
ADDS = """
import sys
from pathlib import Path
from hitin.locking import locked_for_now

folder, sum = Path(sys.argv[1]), Path(sys.argv[2])
for _ in range(int(sys.argv[3])):
    with locked_for_now(folder, "adding", patience=60):
        sum.write_text(str(int(sum.read_text()) + 1))
"""


def test_processes_that_remove_the_folder_of_their_lock_keep_each_other_out_all_the_same(tmp_path: Path) -> None:
    folder, total = tmp_path / "one" / "two", tmp_path / "sum"
    total.write_text("0")
    command = [sys.executable, "-c", ADDS, str(folder), str(total), str(TIMES)]
    adding = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(120) for process in adding] == [0, 0, 0]
    assert total.read_text() == str(3 * TIMES)


def test_nothing_stays_of_a_lock_for_now_nor_of_folders_made_for_it(tmp_path: Path) -> None:
    with locked_for_now(tmp_path / "one" / "two", "testing"):
        assert (tmp_path / "one" / "two").is_dir()
    assert not list(tmp_path.iterdir())


def test_a_folder_that_another_has_removed_already_does_not_keep_those_around_it(tmp_path: Path) -> None:
    (tmp_path / "one" / "two").mkdir(parents=True)
    (tmp_path / "one" / "file").touch()
    remove_empty([tmp_path / "one" / "two" / "three", tmp_path / "one" / "two", tmp_path / "one"])
    assert [*tmp_path.iterdir()] == [tmp_path / "one"]
    assert [*(tmp_path / "one").iterdir()] == [tmp_path / "one" / "file"]


@pytest.mark.parametrize("folder", ["/proc/folder", "file/folder", "file"])
def test_a_place_that_takes_no_folder_is_not_taken_for_one_that_another_process_has(
    folder: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    for lock in (locked, locked_for_now):
        with pytest.raises(InputError) as caught, lock(tmp_path / folder, "testing", patience=60):
            pass
        assert caught.value.kind == "unwritable"
    assert (tmp_path / "file").is_file()


def test_who_comes_later_is_told_what_the_folder_is_used_for(tmp_path: Path) -> None:
    told = pytest.raises(InputError, match="another process is testing in this folder")
    with locked(tmp_path, "testing"), told, locked(tmp_path, "testing"):
        pass
