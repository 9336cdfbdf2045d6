internal import Dispatch
internal import Glibc
internal import NetwatchEventLoop

/// Waits until a condition holds. Checks it immediately, and again whenever a file in the directory is created,
/// written, renamed or removed (`inotify(7)`).
///
/// - Throws: ``SystemError`` of `inotify_init1` or `inotify_add_watch`. The error of the condition. `CancellationError`
///   if the task is cancelled.
package func until(changesIn directory: String, _ isSatisfied: () async throws -> Bool) async throws {
    let inotify = try Inotify()
    _ = try inotify.watch(
        directory,
        for: IN_CREATE | IN_MODIFY | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE
    )
    let signal = ChangeSignal()
    let source = DispatchSource.makeReadSource(fileDescriptor: inotify.descriptor)
    source.setEventHandler {
        // The events only need to be read. Every change causes another check of the condition.
        _ = inotify.read()
        signal.post()
    }
    // The descriptor must stay open until Dispatch has stopped polling it.
    source.setCancelHandler { withExtendedLifetime(inotify) {} }
    source.activate()
    defer { source.cancel() }
    try await signal.until(isSatisfied)
}
