internal import Dispatch
internal import Glibc
internal import NetwatchEventLoop

/// Waits until a condition holds. It is checked immediately, and after a file in the directory was created, written,
/// renamed or removed (`inotify(7)`).
///
/// - Throws: ``SystemError`` of `inotify_init1` and `inotify_add_watch`; also as ``ChangeSignal/until(_:)``.
package func until(changesIn directory: String, _ isSatisfied: () async throws -> Bool) async throws {
    let inotify = try Inotify()
    _ = try inotify.watch(
        directory,
        for: IN_CREATE | IN_MODIFY | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE
    )
    let signal = ChangeSignal()
    let source = DispatchSource.makeReadSource(fileDescriptor: inotify.descriptor)
    source.setEventHandler {
        // The kind of change does not matter: the condition is checked again anyway.
        _ = inotify.read()
        signal.post()
    }
    // The descriptor must stay open until Dispatch has stopped polling it.
    source.setCancelHandler { withExtendedLifetime(inotify) {} }
    source.activate()
    defer { source.cancel() }
    try await signal.until(isSatisfied)
}
