internal import Glibc
package import NetwatchEventLoop

/// Calls libnl-route-3's parsers, except while the process exits.
///
/// Destructors of the library unregister its parsers. `exit(3)` runs them while other threads are still running. A
/// parser that then looks up its functions prints `BUG … Assertion` and aborts the process. In a program that exits
/// while links change, 3 of 200 runs ended so.
package enum LibraryParsers {
    private static let isExiting = Lock(false)

    /// Handlers of `atexit(3)` run before the destructors of shared libraries.
    private static let exitHandler: CInt = atexit { LibraryParsers.stop() }

    /// Waits until no parser runs, which takes microseconds, and prevents later calls. Stops waiting after a second,
    /// because in a child of `fork(2)` the thread that held the lock does not exist.
    private static func stop() {
        for _ in 0..<10_000 {
            if isExiting.withLockIfAvailable({ $0 = true }) != nil { return }
            usleep(100)
        }
    }

    /// Calls `body`, which may use the parsers. It must neither exit nor call code of the program.
    ///
    /// - Throws: A ``SystemError`` with `ECANCELED` if the process exits.
    package static func use<Result>(_ body: () -> Result) throws(SystemError) -> Result {
        _ = exitHandler
        return try isExiting.withLock { isExiting throws(SystemError) in
            if isExiting { throw SystemError(call: "libnl-route-3 during exit", errno: ECANCELED) }
            return body()
        }
    }
}
