/// An object for closures to capture. It reports its release, which shows that the closures are released.
package final class Captured: Sendable {
    private let onRelease: @Sendable () -> Void

    package init(onRelease: @escaping @Sendable () -> Void) {
        self.onRelease = onRelease
    }

    deinit {
        onRelease()
    }
}
