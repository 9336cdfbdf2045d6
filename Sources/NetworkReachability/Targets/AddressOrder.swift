internal import NetwatchEventLoop

/// Finds the addresses that a prefix covers. In sorted order they are adjacent.
///
/// A sorted array instead of a bit trie: it needs 32 bytes per address. It is sorted again, in almost linear time, by
/// the first query after an insertion. Removed addresses stay in the array until more than half of it is stale. A
/// stale entry causes at most one unnecessary lookup.
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

    /// Whether the array should be rebuilt.
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
    mutating func slots(within prefix: IPPrefix) -> [AddressBook.Slot] {
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

    fileprivate mutating func slots(_ range: ClosedRange<UInt128>) -> [AddressBook.Slot] {
        if !isSorted { entries.sort { $0.bits < $1.bits } }
        isSorted = true
        let first = entries.partitionPoint { $0.bits >= range.lowerBound }
        return entries[first...].prefix { $0.bits <= range.upperBound }.map(\.slot)
    }
}

extension RandomAccessCollection {
    /// Returns the first index at which the condition is true. Once true, the condition must stay true to the end.
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
