//! The folder of the control socket, which only its user may enter.

use super::error::ControlError;
use crate::paths::{make_private, runtime};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};

/// Creates the runtime folder, and checks that it is this user's and that no other user can enter.
pub fn private_runtime() -> Result<(), ControlError> {
    let path = runtime();
    make_private(&path).map_err(ControlError::io("create", &path))?;
    let user = nix::unistd::geteuid().as_raw();
    let owned = |metadata: std::fs::Metadata| match metadata.uid() {
        owner if owner == user => Ok(metadata),
        owner => Err(ControlError::Folder {
            path: path.clone(),
            owner,
            user,
        }),
    };
    // Checked before it is opened, because another user's folder cannot be opened.
    std::fs::symlink_metadata(&path)
        .map_err(ControlError::io("read", &path))
        .and_then(owned)?;
    let folder = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
        .open(&path)
        .map_err(ControlError::io("open", &path))?;
    let metadata = folder
        .metadata()
        .map_err(ControlError::io("read", &path))
        .and_then(owned)?;
    if metadata.mode() & 0o077 != 0 {
        folder
            .set_permissions(std::fs::Permissions::from_mode(0o700))
            .map_err(ControlError::io("close to others", &path))?;
    }
    Ok(())
}
