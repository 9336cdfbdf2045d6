internal import CNetwatchCurl
internal import NetwatchEventLoop
internal import Synchronization

/// An easy handle, with the memory to which its options point. Its callbacks receive this object as their context.
///
/// Transfers of the same ``Shape`` use a handle one after another (``HandleStock``), because setting the options of a
/// new handle takes longer than a small response. Between two transfers, only ``prepare(for:)`` sets options.
final class TransferHandle {
    /// The properties that transfers must have in common to use the same handle.
    struct Shape: Equatable {
        private let method: String
        private let streamWeight: Int
        private let origin: String

        /// Creates the shape of a transfer.
        ///
        /// Returns `nil` if the transfer needs a separate handle: it has a body, credentials or a binding, it must not
        /// share connections, or it connects to a unix socket.
        init?(_ target: TransferTarget) {
            let request = target.request
            guard !request.isSentWithBody, request.credentials == nil, target.mayShareConnections,
                // A user name in the URL. In a path, the character only prevents the reuse of the handle.
                request.url.allBytes({ $0 != UInt8(ascii: "@") })
            else { return nil }
            method = request.method
            streamWeight = request.streamWeight
            origin = target.url.origin
        }
    }

    /// The shape of the transfers that may use the handle; `nil` if only one may.
    let shape: Shape?
    /// The transfer that uses the handle; `nil` between transfers.
    private(set) unowned var transfer: Transfer?
    /// Whether libcurl has begun the transfer. Before that, libcurl's information is that of an earlier transfer.
    private var hasBegun = false

    // libcurl does not copy the memory of these properties. The handle is destroyed first.
    let easy: EasyHandle
    private let resolved: StringList
    private var headerList = StringList()
    private let message = MessageBuffer()

    /// The fields in ``headerList``; `nil` if there is no list.
    private(set) var headers: [TransferRequest.Header]?
    /// Whether ``headers`` contains one of ``SecretHeaderFields``.
    private var hasSecretHeaders = false

    /// Creates a handle for a transfer.
    ///
    /// - Parameters:
    ///   - shape: The shape of the transfer; `nil` if no other transfer may use the handle.
    ///   - usesHTTP1: Whether the transfer uses HTTP/1.1 over TLS, too.
    /// - Throws: ``TransferFailure`` if memory is exhausted or libcurl rejects an option.
    init(for target: TransferTarget, shape: Shape?, usesHTTP1: Bool) throws(TransferFailure) {
        guard let easy = EasyHandle() else { throw .refused(CURLE_OUT_OF_MEMORY, "out of memory") }
        self.shape = shape
        self.easy = easy
        resolved = target.resolveList()
        try self.easy.apply(target.request)
        if target.url.isSecure { try self.easy.applyTLS(of: target.request, usesHTTP1: usesHTTP1) }
        if let entry = resolved.rawValue { try self.easy.set(CURLOPT_RESOLVE, pointer: entry) }
        try self.easy.set(CURLOPT_ERRORBUFFER, pointer: message.rawValue)
        try self.easy.set(CURLOPT_PRIVATE, pointer: context)
    }

    /// Records that libcurl has begun the transfer.
    func transferBegins() { hasBegun = true }

    /// Records that the transfer has ended. Drops its header fields if they contain secrets, because the handle may
    /// stay unused for a minute or more.
    func transferEnded() {
        transfer = nil
        hasBegun = false
        guard hasSecretHeaders, (try? use(StringList())) != nil else { return }
        headers = nil
        hasSecretHeaders = false
    }

    /// The object as the context of callbacks.
    var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    /// Returns the handle to which a callback's context points.
    static func at(_ context: UnsafeMutableRawPointer) -> TransferHandle {
        Unmanaged<TransferHandle>.fromOpaque(context).takeUnretainedValue()
    }

    /// libcurl's message about the error that ended the transfer; `nil` if there is none.
    var errorMessage: String? { message.text }

    /// Sets the options that may differ between transfers of the same shape.
    ///
    /// - Parameters:
    ///   - transfer: The transfer that uses the handle from now on.
    func prepare(for transfer: Transfer) throws(TransferFailure) {
        self.transfer = transfer
        message.clear()
        try easy.set(CURLOPT_URL, transfer.request.url)
        guard headers != transfer.request.headers else { return }
        try use(transfer.request.headerList())
        headers = transfer.request.headers
        hasSecretHeaders = transfer.request.headers.contains {
            SecretHeaderFields.request.contains($0.name.lowercased())
        }
    }

    /// Makes libcurl send another list of header fields. libcurl must not have the old list when it is freed.
    private func use(_ list: consuming StringList) throws(TransferFailure) {
        try easy.set(CURLOPT_HTTPHEADER, pointer: list.rawValue)
        headerList = list
    }
}

// What libcurl knows about the current transfer. The values are 0 or `nil` until libcurl has begun it.
extension TransferHandle {
    func long(_ info: CURLINFO) -> Int { hasBegun ? easy.long(info) : 0 }

    func offset(_ info: CURLINFO) -> Int64 { hasBegun ? easy.offset(info) : 0 }

    func string(_ info: CURLINFO) -> String? { hasBegun ? easy.string(info) : nil }

    func time(_ info: CURLINFO) -> Duration? { hasBegun ? easy.time(info) : nil }
}

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

/// An identifier of a transfer, unique within the process.
package struct TransferID: Hashable, Sendable {
    private static let next = Atomic<UInt64>(0)

    private let rawValue: UInt64

    init() {
        rawValue = Self.next.wrappingAdd(1, ordering: .relaxed).newValue
    }
}
