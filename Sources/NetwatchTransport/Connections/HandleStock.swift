/// The easy handles of a multi handle that no transfer uses. The handle that was used last is used first, because its
/// memory is most likely in the processor's cache.
struct HandleStock {
    /// The maximum number of handles.
    static let limit = 64

    private(set) var handles: [TransferHandle] = []

    /// Removes and returns a handle for a transfer; `nil` if there is none of this shape.
    mutating func take(_ shape: TransferHandle.Shape) -> TransferHandle? {
        handles.lastIndex { $0.shape == shape }.map { handles.remove(at: $0) }
    }

    /// Adds the handle of a transfer that has ended. Drops the oldest handle if there are too many.
    mutating func add(_ handle: TransferHandle) {
        handle.transferEnded()
        if handles.count == Self.limit { handles.removeFirst() }
        handles.append(handle)
    }

    mutating func removeAll() { handles = [] }
}
