/// The transfers that have events to deliver at the end of a turn of libcurl.
struct EventDelivery {
    private var transfers: [Transfer] = []

    mutating func add(_ transfer: Transfer) {
        transfers.append(transfer)
    }

    /// Removes and returns the registered transfers.
    mutating func take() -> [Transfer] {
        defer { transfers = [] }
        return transfers
    }
}
