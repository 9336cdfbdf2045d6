/// A FIFO queue of slots to look up.
struct SlotQueue {
    private var slots: [AddressBook.Slot] = []
    /// The index of the first slot that has not been taken.
    private var first = 0

    var isEmpty: Bool { first == slots.count }

    mutating func append(_ slot: AddressBook.Slot) {
        slots.append(slot)
    }

    mutating func take(_ limit: Int) -> [AddressBook.Slot] {
        // Not a slice, because it would share the memory of the queue, which would then allocate other memory.
        let taken = Array(slots[first...].prefix(limit))
        first += taken.count
        if first > slots.count / 2 {
            slots.removeFirst(first)
            first = 0
        }
        return taken
    }
}
