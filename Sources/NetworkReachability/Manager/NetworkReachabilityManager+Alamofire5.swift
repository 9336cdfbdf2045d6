public import Dispatch

// What Alamofire 5 added to the manager, with its names.
extension NetworkReachabilityManager {
    /// Starts calling a listener, which replaces the one before; otherwise as ``startListening()``.
    ///
    /// - Parameters:
    ///   - queue: Where it is called. Default the main queue.
    ///   - listener: What is called.
    /// - Returns: Whether the kernel can be asked.
    @discardableResult
    public func startListening(
        onQueue queue: DispatchQueue = .main,
        onUpdatePerforming listener: @escaping Listener
    ) -> Bool {
        // The listener before must not be replaced while its queue still has something for it.
        stopListening()
        listenerQueue = queue
        self.listener = listener
        return startListening()
    }
}
