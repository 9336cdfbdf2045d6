internal import CNetwatchCurl
internal import NetwatchEventLoop

/// The interface through which a transfer's callbacks reach the multi handle that runs the transfer.
///
/// The methods must be called on the engine's thread only.
protocol TransferContext: AnyObject {
    var loop: EventLoop { get }
    /// The trust that all transfers of this multi handle share.
    var trust: TrustContext { get }
    /// Whether all transfers of this multi handle use HTTP/1.1 over TLS, too.
    var usesHTTP1: Bool { get }
    /// A function that schedules a closure for another turn of the loop, so that the closure never runs within a
    /// callback of libcurl. The closure receives the transfer. If it does not return `CURLE_OK`, the transfer ends.
    ///
    /// The function may be called on any thread.
    var later: @Sendable (TransferID, @escaping @Sendable (Transfer) -> CURLcode) -> Void { get }

    /// Sets the callback that closes sockets for libcurl. The multi handle provides it, because a connection may
    /// outlive its transfer, but not its multi handle.
    func setCloseSocketCallback(of easy: borrowing EasyHandle) throws(TransferFailure)

    /// Removes and returns the unused handle of an earlier transfer of this shape; `nil` if there is none.
    func takeHandle(_ shape: TransferHandle.Shape) -> TransferHandle?

    /// Records that libcurl has taken over the connection that was made for a transfer, or has connected to a unix
    /// socket for it.
    func didOpen(_ descriptor: CInt, for transfer: Transfer)

    /// Records the connection that libcurl selected for a transfer.
    func didSelectConnection(for transfer: Transfer)

    /// Returns whether the connection of a transfer has data to read; `nil` if it speaks HTTP/2. libcurl does not
    /// report which of several connections to a unix socket it has selected, so data on any idle one counts.
    func hasUnreadData(connectionOf transfer: Transfer) -> Bool?

    /// Records whether the connection of a transfer speaks HTTP/2 and so carries many transfers at a time.
    func setMultiplexed(_ isMultiplexed: Bool, connectionOf id: TransferID)

    /// Returns the number of bytes that the connection of a transfer has sent so far; `nil` if it is not a TCP
    /// connection.
    func sentBytes(connectionOf id: TransferID) -> UInt64?

    /// Records that libcurl has transferred bytes of a head or body. The watchdog needs this as proof of progress.
    func recordUsefulBytes(_ count: Int)

    /// Registers a transfer for ``Transfer/deliverEvents()`` at the end of this turn.
    func scheduleDelivery(to transfer: Transfer)
}
