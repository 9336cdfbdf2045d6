internal import NetwatchEventLoop

/// The multi handle that runs a transfer, as the transfer's callbacks use it.
///
/// It is confined to the engine's thread.
protocol TransferContext: AnyObject {
    var loop: EventLoop { get }
    /// What servers must prove to the transfers of this multi handle.
    var trust: TrustContext { get }

    /// Sets the callback with which libcurl closes sockets. A connection may outlive its transfer, but not its multi
    /// handle.
    func setCloseSocketCallback(of easy: borrowing EasyHandle) throws(TransferFailure)

    /// Records that libcurl took over the connection that was made for a transfer.
    func didOpen(_ descriptor: CInt, for transfer: Transfer)

    /// Records the connection that libcurl selected for a transfer.
    func didSelectConnection(for transfer: Transfer)

    /// Records whether the server of a transfer speaks HTTP/2.
    func setMultiplexed(_ isMultiplexed: Bool, connectionOf id: TransferID)

    /// Returns the number of bytes that were sent over the connection of a transfer; `nil` if it is not TCP.
    func sentBytes(connectionOf id: TransferID) -> UInt64?

    /// Records that libcurl has delivered or read bytes of a head or a body.
    func recordUsefulBytes(_ count: Int)

    /// Registers a transfer for ``Transfer/deliverEvents()`` at the end of this turn.
    func scheduleDelivery(to transfer: Transfer)
}
