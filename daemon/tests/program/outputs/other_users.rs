//! Files of other users in a world-writable folder are neither written nor followed.

use super::{OLD, World, look, make, names, text};
use crate::control::support::{NOBODY, is_root, open_to};
use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::{Path, PathBuf};

/// A new folder like /tmp.
fn folder_of_all(parent: &Path) -> PathBuf {
    let shared = parent.join("shared");
    fs::create_dir(&shared).unwrap();
    open_to(&shared, 0o1777);
    shared
}

#[test]
fn a_link_of_another_user_is_not_followed() {
    if !is_root() {
        println!("skipped: outputs that are another user's links: only root can make one");
        return;
    }
    let world = World::new();
    for verb in world.verbs() {
        let folder = world.folder();
        let shared = folder_of_all(folder.path());
        let (target, absent) = (folder.path().join("target"), folder.path().join("absent"));
        fs::write(&target, OLD).unwrap();
        let theirs = folder.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        chown(&theirs, Some(NOBODY), None).unwrap();
        for (folder, to) in [&shared, &theirs]
            .into_iter()
            .flat_map(|folder| [(folder, &target), (folder, &absent)])
        {
            let link = folder.join("link");
            symlink(to, &link).unwrap();
            std::os::unix::fs::lchown(&link, Some(NOBODY), None).unwrap();
            let output = verb.run(&world, &link);
            verb.fails(&output, &[text(&link), "another user's symbolic link"]);
            fs::remove_file(&link).unwrap();
        }
        assert_eq!(
            fs::read_to_string(&target).unwrap(),
            OLD,
            "{:?}",
            verb.words
        );
        assert_eq!(names(folder.path()), ["shared", "target", "theirs"]);
    }
}

#[test]
fn what_another_user_put_into_a_folder_of_all_is_not_written() {
    if !is_root() {
        println!("skipped: outputs that are another user's: only root can make one");
        return;
    }
    let world = World::new();
    for verb in world.verbs() {
        let folder = world.folder();
        let shared = folder_of_all(folder.path());
        let [file, fifo, device] = ["file", "fifo", "device"].map(|name| shared.join(name));
        fs::write(&file, OLD).unwrap();
        make("mkfifo", &[text(&fifo)]);
        make("mknod", &[text(&device), "c", "1", "3"]);
        let about = |path: &PathBuf| (look(path).ino(), look(path).uid(), look(path).mode());
        for (out, kind) in [(&file, "file"), (&fifo, "FIFO"), (&device, "device")] {
            chown(out, Some(NOBODY), Some(NOBODY)).unwrap();
            let before = about(out);
            // The FIFO has no reader, so opening it would wait for ever.
            let output = verb.run(&world, out);
            let reason = format!("another user's {kind}");
            verb.fails(&output, &["cannot write", text(out), &reason]);
            assert_eq!(about(out), before, "{:?}", verb.words);
        }
        let content = fs::read_to_string(&file).unwrap();
        assert_eq!(content, OLD, "{:?}", verb.words);
        assert_eq!(names(&shared), ["device", "fifo", "file"]);

        // The folder's owner may do anything in it, and the user has files of their own there.
        chown(&shared, Some(NOBODY), None).unwrap();
        verb.succeeds(&world, &file);
        verb.is_in(&file);
        let own = shared.join("own");
        fs::write(&own, OLD).unwrap();
        verb.succeeds(&world, &own);
        verb.is_in(&own);
    }
}
