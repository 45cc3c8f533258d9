"""How are files of a recording reached that was made on a board? By adb, as ADB in the environment says; else they are here."""

import atexit
import os
import shlex
import shutil
import subprocess
import tempfile

ADB = shlex.split(os.environ.get("ADB", ""))
copies = {}
folder = None


def command(*words):
    """A command line, run where the recording is."""
    return [*ADB, "shell", *words] if ADB else list(words)


def fetched(path):
    """A path by which the file can be read here; without adb it is its own. One that is not there has a path, too."""
    global folder
    if not ADB:
        return path
    if folder is None:
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder)
    if path not in copies:
        copies[path] = os.path.join(folder, str(len(copies)))
        subprocess.run([*ADB, "pull", path, copies[path]], capture_output=True, check=False)
    return copies[path]


def sent(path, to):
    """Brings a file that was written here to a path where the recording is."""
    if ADB:
        subprocess.run([*ADB, "push", path, to], capture_output=True, check=True)
    else:
        shutil.copyfile(path, to)
