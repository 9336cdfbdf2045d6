internal import CNetwatchLinux

/// Puts the calling thread into a network namespace, where every socket made on it belongs from then on. The
/// process's other threads stay where they are, and so do files: the mounts are not changed.
///
/// - Parameter path: `/run/netns/NAME`, `/proc/PID/ns/net`.
/// - Throws: ``SystemError`` of `open`, or of `setns` (`EPERM` without `CAP_SYS_ADMIN` over the namespace,
///   `EINVAL` when the file is no network namespace).
package func enterNetworkNamespace(_ path: String) throws(SystemError) {
    let namespace = try FileDescriptor.opening(path)
    try systemCall("setns \(path)") { setns(namespace.rawValue, CLONE_NEWNET) }
}
