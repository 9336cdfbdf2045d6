internal import NetwatchEventLoop

/// Finds the addresses that a prefix covers: they lie side by side when addresses are in order.
///
/// A sorted array rather than a tree of bits: it takes 32 bytes an address, and is sorted again, in almost
/// linear time, when the first prefix is asked for after addresses came. Those that went stay in it until
/// half of it is stale; asking for one of them costs a lookup too many and nothing else.
struct AddressOrder {
    private struct Entry {
        let bits: UInt128
        let slot: AddressBook.Slot
    }

    private var entries: [IPAddress.Family: [Entry]] = [:]
    private var unsorted: Set<IPAddress.Family> = []
    private var count = 0
    private var stale = 0

    /// Whether it is worth the work to begin anew.
    var isMostlyStale: Bool {
        stale > 64 && stale > count / 2
    }

    mutating func insert(_ address: IPAddress, _ slot: AddressBook.Slot) {
        entries[address.family, default: []].append(Entry(bits: address.bits, slot: slot))
        unsorted.insert(address.family)
        count += 1
    }

    mutating func removeOne() {
        stale += 1
    }

    /// The slots of the addresses that lie within a prefix.
    mutating func slots(within prefix: IPPrefix) -> [AddressBook.Slot] {
        sort(prefix.family)
        guard let entries = entries[prefix.family] else { return [] }
        let first = entries.partitionPoint { $0.bits >= prefix.firstBits }
        let last = prefix.lastBits
        return entries[first...].prefix { $0.bits <= last }.map(\.slot)
    }

    private mutating func sort(_ family: IPAddress.Family) {
        guard unsorted.remove(family) != nil else { return }
        entries[family]?.sort { $0.bits < $1.bits }
    }
}

extension RandomAccessCollection {
    /// The index of the first element that satisfies a condition which, once true, stays true to the end.
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
