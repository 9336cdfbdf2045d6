public import Dispatch

// Additions of Alamofire 5 to the manager, under the same names.
extension NetworkReachabilityManager {
    /// Starts calling a listener, which replaces the previous one. Otherwise the same as ``startListening()``.
    ///
    /// - Parameters:
    ///   - queue: The queue on which the listener is called. Default: the main queue.
    ///   - listener: The closure to call.
    /// - Returns: Whether netlink is available.
    @discardableResult
    public func startListening(
        onQueue queue: DispatchQueue = .main,
        onUpdatePerforming listener: @escaping Listener
    ) -> Bool {
        // Stop first: the previous queue may still hold statuses for the previous listener.
        stopListening()
        listenerQueue = queue
        self.listener = listener
        return startListening()
    }
}
