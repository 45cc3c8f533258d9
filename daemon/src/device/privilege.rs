//! Selects the user that runs varid on the device: root, or else the app's own user.

use super::access::Access;
use super::adb::Device;
use super::error::{DeviceError, Result};

/// AOSP's `su` takes a user and a command. The `su` of rooted devices takes a script.
const SU: [&str; 2] = ["su 0 sh -c", "su -c"];

/// Returns the device as root if possible, else as adb's own user, and whether it is root.
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

/// Returns the device as the user of an app, which must be debuggable. `process`: the name of the app's process.
pub fn as_app(device: &Device, process: &str) -> Result<Device> {
    // An app's other processes have names like org.example.app:name.
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
    /// Returns the same device with another user.
    fn with(self, access: Access) -> Self {
        Self { access, ..self }
    }
}

/// Checks for root. `id` of old devices has no options. A missing or refusing `su` is not an error.
fn is_root(device: &Device) -> Result<bool> {
    let answer = device.ask("id 2>/dev/null")?;
    let user = answer.out.split_whitespace().next().unwrap_or_default();
    Ok(user == "uid=0" || user.starts_with("uid=0("))
}
