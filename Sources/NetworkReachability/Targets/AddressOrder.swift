internal import NetwatchEventLoop

/// A sorted index of the watched addresses, which finds the addresses that a prefix covers.
///
/// A sorted array is enough, because the addresses of a prefix are adjacent in it. The array needs 32 bytes per
/// address; a bit trie would need more. The first query after an insertion sorts the array again, in almost linear
/// time.
///
/// A removed address stays in the array until more than half of the entries are stale. Then ``AddressBook`` rebuilds
/// the array. A stale entry causes at most one unnecessary lookup.
struct AddressOrder {
    fileprivate struct Entry {
        let bits: UInt128
        let slot: AddressBook.Slot
    }

    fileprivate struct Family {
        var entries: [Entry] = []
        var isSorted = true
    }

    private var ipv4 = Family()
    private var ipv6 = Family()
    private var stale = 0

    /// Whether more than half of the entries, and more than 64, are stale, so that the array should be rebuilt.
    var shouldRebuild: Bool {
        stale > 64 && stale > (ipv4.entries.count + ipv6.entries.count) / 2
    }

    mutating func insert(_ address: IPAddress, _ slot: AddressBook.Slot) {
        let entry = Entry(bits: address.bits, slot: slot)
        switch address.family {
        case .ipv4: ipv4.insert(entry)
        case .ipv6: ipv6.insert(entry)
        }
    }

    mutating func removeOne() {
        stale += 1
    }

    /// Returns the slots of the addresses within a prefix.
    mutating func slots(within prefix: IPPrefix) -> some Sequence<AddressBook.Slot> {
        switch prefix.family {
        case .ipv4: ipv4.slots(prefix.firstBits...prefix.lastBits)
        case .ipv6: ipv6.slots(prefix.firstBits...prefix.lastBits)
        }
    }
}

extension AddressOrder.Family {
    fileprivate mutating func insert(_ entry: AddressOrder.Entry) {
        entries.append(entry)
        isSorted = false
    }

    fileprivate mutating func slots(_ range: ClosedRange<UInt128>) -> some Sequence<AddressBook.Slot> {
        if !isSorted { entries.sort { $0.bits < $1.bits } }
        isSorted = true
        let first = entries.partitionPoint { $0.bits >= range.lowerBound }
        return entries[first...].prefix { $0.bits <= range.upperBound }.lazy.map(\.slot)
    }
}

extension RandomAccessCollection {
    /// Returns the first index at which the condition is true, or `endIndex`.
    ///
    /// From that index on, the condition must be true for all elements.
    fileprivate func partitionPoint(_ isBehind: (Element) -> Bool) -> Index {
        var (low, count) = (startIndex, count)
        while count > 0 {
            let half = count / 2
            let middle = index(low, offsetBy: half)
            if isBehind(self[middle]) {
                count = half
            } else {
                low = index(after: middle)
                count -= half + 1
            }
        }
        return low
    }
}

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
