//! As whom can varid run on the device: root, or at least the app's own user?

use super::access::Access;
use super::adb::Device;
use super::error::{DeviceError, Result};

/// AOSP's `su` takes a user and a command, those of rooted devices a script.
const SU: [&str; 2] = ["su 0 sh -c", "su -c"];

/// The device as root, if that can be had; else as adb's own user; and whether it is root.
pub fn find(device: Device) -> Result<(Device, bool)> {
    if is_root(&device)? {
        return Ok((device, true));
    }
    for form in SU {
        let by_su = device.clone().with(Access::Su(form));
        if is_root(&by_su)? {
            tracing::info!("{}: root by su", device.serial);
            return Ok((by_su, true));
        }
    }
    Ok((device, false))
}

/// The device as the user of an app, which has to be debuggable; `process`: what the app's
/// process is called.
pub fn as_app(device: &Device, process: &str) -> Result<Device> {
    // An app's further processes are called org.example.app:name.
    let package = process.split(':').next().unwrap_or(process);
    let as_app = Device {
        serial: device.serial.clone(),
        access: Access::RunAs(package.to_owned()),
    };
    let answer = as_app.ask("id")?;
    if answer.status == 0 && answer.out.contains("uid=") {
        return Ok(as_app);
    }
    Err(DeviceError::NoAccess {
        serial: device.serial.clone(),
        package: package.to_owned(),
        said: answer.said,
    })
}

impl Device {
    /// The same device, as somebody else.
    fn with(self, access: Access) -> Self {
        Self { access, ..self }
    }
}

/// Old devices' `id` knows no options. A `su` that refuses, or is not there, is no error.
fn is_root(device: &Device) -> Result<bool> {
    let answer = device.ask("id 2>/dev/null")?;
    let user = answer.out.split_whitespace().next().unwrap_or_default();
    Ok(user == "uid=0" || user.starts_with("uid=0("))
}
