/// A watch of a descriptor that ends when this object is released. The descriptor stays open until then.
package final class DescriptorWatch: Sendable {
    private let loop: EventLoop
    private let owner: any AnyObject & Sendable
    private let registration: EventLoop.Registration

    /// Begins to watch a descriptor; see ``EventLoop/register(_:for:handler:)``.
    ///
    /// - Parameter owner: The object that closes the descriptor in its `deinit`. The watch retains it.
    /// - Throws: ``SystemError`` of `epoll_ctl`.
    package init(
        loop: EventLoop,
        _ descriptor: CInt,
        of owner: any AnyObject & Sendable,
        for interest: EventLoop.Interest,
        handler: @escaping @Sendable (EventLoop.Readiness) -> Void
    ) throws(SystemError) {
        self.loop = loop
        self.owner = owner
        registration = try loop.register(descriptor, for: interest, handler: handler)
    }

    deinit {
        loop.unregister(registration)
    }
}
