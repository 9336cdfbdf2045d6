internal import CNetwatchNetlink
internal import Glibc
package import NetwatchEventLoop

/// A classic BPF program that selects the notifications that the kernel delivers to the event socket.
///
/// The filter rejects only notifications of routes that cover none of the watched addresses. On a machine with a full
/// routing table, there are thousands of such notifications per second. Everything else passes, including all default
/// routes. The multicast routes also pass, because ``NetlinkEvent`` detects the start of IPv6 on an interface from
/// them.
///
/// The filter only saves work. If it passes too much, the results are still right. Classic BPF needs no privilege. A
/// watched IPv4 address takes five instructions, so several hundred fit into a program.
package struct EventFilter {
    let program: [sock_filter]
    /// The prefixes whose routes pass; `nil` if the filter passes everything.
    package let prefixes: [IPPrefix]?

    /// The maximum number of instructions in a program. The kernel has two limits: 4096 instructions (`BPF_MAXINSNS`),
    /// and the memory for the translated program (`net.core.optmem_max`). The memory is 20 KiB before Linux 6.7, which
    /// is enough for 2,000 instructions.
    private static let maxInstructions = 1800

    /// The filter that passes everything.
    package static let open = EventFilter(program: [.accept], prefixes: nil)

    /// Creates a filter that passes all routes that cover at least one of these addresses. If there are too many
    /// addresses for one program, it also passes routes to addresses near them.
    ///
    /// - Parameter addresses: The addresses, of both families and in any order.
    package init(covering addresses: [IPAddress]) {
        let families = Dictionary(grouping: addresses, by: \.family)
        let groups = IPAddress.Family.allCases.map {
            PrefixCover(addresses: families[$0, default: []].map(\.bits), family: $0)
        }
        // The first attempt has up to 1024 prefixes per family. Each further attempt has fewer and larger prefixes,
        // until the program is small enough.
        for budget in [1024, 256, 64, 16, 4, 1] {
            let prefixes = groups.flatMap { $0.prefixes(atMost: budget) }
            let hasIPv6 = prefixes.contains { $0.family == .ipv6 }
            let program = Self.program(for: prefixes + (hasIPv6 ? [.ipv6Multicast] : []))
            if program.count <= Self.maxInstructions {
                self.init(program: program, prefixes: prefixes)
                return
            }
        }
        self = .open
    }

    private init(program: [sock_filter], prefixes: [IPPrefix]?) {
        self.program = program
        self.prefixes = prefixes
    }

    /// Returns whether the filter passes a route to this single address.
    package func covers(_ address: IPAddress) -> Bool {
        prefixes?.contains { $0.contains(address) } ?? true
    }
}

// MARK: - The program

/// The offsets in netlink(7) and rtnetlink(7) messages. The kernel filters one message at a time.
private enum Offset {
    static let type: UInt32 = 4
    static let flags: UInt32 = 6
    static let family: UInt32 = 16
    static let prefixLength: UInt32 = 17
    /// The attributes follow `struct rtmsg`.
    static let attributes: UInt32 = 28
}

/// The slots of the program's scratch memory. `first` and `last` are the first and the last address of the route, in
/// words of 32 bits. Word 0 is the most significant one.
private enum Slot {
    static let prefixLength: UInt32 = 0
    static func first(_ word: Int) -> UInt32 { UInt32(1 + word) }
    static func last(_ word: Int) -> UInt32 { UInt32(5 + word) }
    static let all: ClosedRange<UInt32> = 0...8
}

extension EventFilter {
    private static func program(for prefixes: [IPPrefix]) -> [sock_filter] {
        let ipv6 = routes(.ipv6, prefixes)
        // The kernel's checker requires that every slot is written before it is read, on every path.
        return [.load(0)] + Slot.all.map { .store($0) }
            // Netlink uses the host's byte order, but BPF loads values in network byte order. So the constants are
            // swapped.
            + [.loadHalf(Offset.type)]
            + unless(anyOf: [UInt16(RTM_NEWROUTE), UInt16(RTM_DELROUTE)].map { UInt32($0.bigEndian) })
            // A datagram with several messages is accepted, because the filter would see only the first message.
            + [.loadHalf(Offset.flags), .jump(ifSet: UInt32(UInt16(NLM_F_MULTI).bigEndian), 0, 1), .accept]
            + [.loadByte(Offset.prefixLength), .jump(ifEqual: 0, 0, 1), .accept, .store(Slot.prefixLength)]
            + [.loadByte(Offset.family), .jump(ifEqual: UInt32(AF_INET6), 0, 1), .skip(1), .skip(ipv6.count)]
            + ipv6
            + [.jump(ifEqual: UInt32(AF_INET), 1, 0), .accept]
            + routes(.ipv4, prefixes)
    }

    /// Returns instructions that accept the message unless the accumulator equals one of two values.
    private static func unless(anyOf values: [UInt32]) -> [sock_filter] {
        [.jump(ifEqual: values[0], 2, 0), .jump(ifEqual: values[1], 1, 0), .accept]
    }

    /// Returns instructions that accept or reject a route of one family. No instruction after them runs.
    private static func routes(_ family: IPAddress.Family, _ prefixes: [IPPrefix]) -> [sock_filter] {
        let ranges = prefixes.filter { $0.family == family }.map { AddressRange($0) }
        guard !ranges.isEmpty else { return [.reject] }
        let words = family.bitWidth / 32
        return loadDestinationOffset
            + (0..<words).flatMap { [.loadAtX(4 + 4 * UInt32($0)), .store(Slot.first($0))] }
            + (0..<words).flatMap(lastWord)
            + [.loadSlot(Slot.first(0))]
            + search(ranges.sorted { $0.first < $1.first }, word: 0)
    }

    /// Returns instructions that store the offset of the `RTA_DST` attribute in X. They accept a message that has no
    /// such attribute.
    private static var loadDestinationOffset: [sock_filter] {
        let loadAttribute = UInt32(bitPattern: SKF_AD_OFF + SKF_AD_NLATTR)
        return [
            .load(Offset.attributes), .loadX(UInt32(RTA_DST.rawValue)), .loadAbsolute(loadAttribute),
            .jump(ifEqual: 0, 0, 1), .accept, .copyToX,
        ]
    }

    /// Returns instructions that store a word of the route's last address. It is the word of the first address with all
    /// bits after the prefix set.
    private static func lastWord(_ word: Int) -> [sock_filter] {
        let start = 32 * UInt32(word)
        return [
            .loadSlot(Slot.prefixLength),
            .jump(ifAtLeast: start + 32, 9, 0),
            .jump(ifAtLeast: start, 1, 0), .load(start), .subtract(start), .copyToX,
            .load(.max), .shiftRightByX, .loadSlotX(Slot.first(word)), .orX, .skip(1),
            .loadSlot(Slot.first(word)),
            .store(Slot.last(word)),
        ]
    }

    /// Returns instructions that accept the route if its range overlaps one of these ranges in this word and all
    /// following words, and reject it if not. Before them, the accumulator must contain this word of the route's first
    /// address.
    ///
    /// They are a binary search for the first range whose end is not less than this word.
    private static func search(_ ranges: [AddressRange], word: Int) -> [sock_filter] {
        let groups = AddressRange.grouped(ranges, byWord: word)
        let end = groups.last!.last
        return [.jump(ifGreater: end, 0, 1), .reject] + search(groups[...], word: word)
    }

    private static func search(_ groups: ArraySlice<AddressRange.Group>, word: Int) -> [sock_filter] {
        guard groups.count > 1 else { return overlap(groups.first!, word: word) }
        let middle = groups.startIndex + (groups.count - 1) / 2
        let left = search(groups[...middle], word: word)
        let right = search(groups[(middle + 1)...], word: word)
        // A conditional jump can skip at most 255 instructions. Longer jumps need a second instruction.
        let goRight: [sock_filter] =
            left.count <= 255
            ? [.jump(ifGreater: groups[middle].last, UInt8(left.count), 0)]
            : [.jump(ifGreater: groups[middle].last, 0, 1), .skip(left.count)]
        return goRight + left + right
    }

    /// Returns instructions that reject the route if its range ends before the start of the group's range. Otherwise
    /// they accept the route, or compare the next word if the group needs it.
    private static func overlap(_ group: AddressRange.Group, word: Int) -> [sock_filter] {
        let begins: [sock_filter] = [
            .loadSlot(Slot.last(word)), .jump(ifAtLeast: group.first, 1, 0), .reject,
        ]
        if group.inner.isEmpty { return begins + [.accept] }
        return begins + [.loadSlot(Slot.first(word + 1))] + search(group.inner, word: word + 1)
    }
}

/// The address range of a prefix.
private struct AddressRange {
    let first: UInt128
    let last: UInt128

    init(_ prefix: IPPrefix) {
        first = prefix.firstBits
        // For IPv4, the bits after the address are set, too. So the first word alone decides about a range.
        last = prefix.lastBits | (prefix.family == .ipv4 ? UInt128.max >> 32 : 0)
    }

    /// A group of ranges for the comparison of one word. It has one of two forms:
    ///
    /// - Several ranges that all have the same single value in the word. The next word distinguishes them.
    /// - One range that spans several values of the word. The following words do not matter.
    struct Group {
        let first: UInt32
        let last: UInt32
        /// The ranges that the next word must distinguish; empty if the following words do not matter.
        var inner: [AddressRange]
    }

    /// Returns the groups of these ranges for the comparison of one word.
    ///
    /// - Parameter ranges: The ranges, which must be sorted and disjoint.
    static func grouped(_ ranges: [AddressRange], byWord word: Int) -> [Group] {
        ranges.reduce(into: []) { groups, range in
            let (first, last) = (range.word(word, of: range.first), range.word(word, of: range.last))
            if let group = groups.last, group.first == first, group.last == last, first == last {
                groups[groups.count - 1].inner.append(range)
            } else {
                groups.append(
                    Group(first: first, last: last, inner: range.coversAllValues(after: word) ? [] : [range])
                )
            }
        }
    }

    private func word(_ word: Int, of bits: UInt128) -> UInt32 {
        UInt32(truncatingIfNeeded: bits >> (96 - 32 * word))
    }

    /// Returns whether the range contains every value of the words after this one.
    private func coversAllValues(after word: Int) -> Bool {
        let mask = word == 3 ? 0 : UInt128.max >> (32 * (word + 1))
        return first & mask == 0 && last & mask == mask
    }
}

// MARK: - Instructions

extension sock_filter {
    private init(_ code: CInt, _ operand: UInt32 = 0, _ whenTrue: UInt8 = 0, _ whenFalse: UInt8 = 0) {
        self.init(code: UInt16(code), jt: whenTrue, jf: whenFalse, k: operand)
    }

    static let accept = Self(BPF_RET | BPF_K, .max)
    static let reject = Self(BPF_RET | BPF_K, 0)

    static func load(_ value: UInt32) -> Self { Self(BPF_LD | BPF_IMM, value) }
    static func loadX(_ value: UInt32) -> Self { Self(BPF_LDX | BPF_IMM, value) }
    static func loadByte(_ offset: UInt32) -> Self { Self(BPF_LD | BPF_B | BPF_ABS, offset) }
    static func loadHalf(_ offset: UInt32) -> Self { Self(BPF_LD | BPF_H | BPF_ABS, offset) }
    static func loadAbsolute(_ offset: UInt32) -> Self { Self(BPF_LD | BPF_W | BPF_ABS, offset) }
    static func loadAtX(_ offset: UInt32) -> Self { Self(BPF_LD | BPF_W | BPF_IND, offset) }
    static func loadSlot(_ slot: UInt32) -> Self { Self(BPF_LD | BPF_MEM, slot) }
    static func loadSlotX(_ slot: UInt32) -> Self { Self(BPF_LDX | BPF_MEM, slot) }
    static func store(_ slot: UInt32) -> Self { Self(BPF_ST, slot) }
    static let copyToX = Self(BPF_MISC | BPF_TAX)

    static func subtract(_ value: UInt32) -> Self { Self(BPF_ALU | BPF_SUB | BPF_K, value) }
    static let shiftRightByX = Self(BPF_ALU | BPF_RSH | BPF_X)
    static let orX = Self(BPF_ALU | BPF_OR | BPF_X)

    static func skip(_ count: Int) -> Self { Self(BPF_JMP | BPF_JA, UInt32(count)) }
    static func jump(ifEqual value: UInt32, _ yes: UInt8, _ no: UInt8) -> Self {
        Self(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
    }
    static func jump(ifSet mask: UInt32, _ yes: UInt8, _ no: UInt8) -> Self {
        Self(BPF_JMP | BPF_JSET | BPF_K, mask, yes, no)
    }
    static func jump(ifGreater value: UInt32, _ yes: UInt8, _ no: UInt8) -> Self {
        Self(BPF_JMP | BPF_JGT | BPF_K, value, yes, no)
    }
    static func jump(ifAtLeast value: UInt32, _ yes: UInt8, _ no: UInt8) -> Self {
        Self(BPF_JMP | BPF_JGE | BPF_K, value, yes, no)
    }
}

/// A cover of many addresses of one family by few prefixes.
struct PrefixCover {
    private let family: IPAddress.Family
    /// The distinct addresses in ascending order.
    private let addresses: [UInt128]
    /// For each length from 0 to 128, the number of pairs of adjacent addresses that have exactly this many leading
    /// bits in common.
    private let commonLengths: [Int]

    /// Creates a cover.
    ///
    /// - Parameter addresses: The ``IPAddress/bits`` of the addresses, in any order.
    init(addresses: [UInt128], family: IPAddress.Family) {
        let sorted = Set(addresses).sorted()
        self.family = family
        self.addresses = sorted
        commonLengths = zip(sorted, sorted.dropFirst()).reduce(into: Array(repeating: 0, count: 129)) {
            $0[Self.commonLength($1.0, $1.1)] += 1
        }
    }

    /// Returns disjoint, sorted prefixes that together contain all addresses.
    ///
    /// Adjacent addresses share a prefix if they have a minimum number of leading bits in common. The minimum is the
    /// same for all, so no prefix is inside another.
    func prefixes(atMost limit: Int) -> [IPPrefix] {
        guard let first = addresses.first else { return [] }
        let length = longestLength(limit: limit)
        var prefixes: [IPPrefix] = []
        var (start, end) = (first, first)
        for address in addresses.dropFirst() {
            if Self.commonLength(end, address) < length {
                prefixes.append(prefix(from: start, to: end))
                start = address
            }
            end = address
        }
        return prefixes + [prefix(from: start, to: end)]
    }

    /// Returns the largest minimum of common bits that results in at most `limit` prefixes.
    private func longestLength(limit: Int) -> Int {
        var groups = 1
        for length in 0...128 {
            groups += commonLengths[length]
            if groups > limit { return length }
        }
        return 129
    }

    private func prefix(from first: UInt128, to last: UInt128) -> IPPrefix {
        IPPrefix(family, bits: first, length: Self.commonLength(first, last))
    }

    private static func commonLength(_ left: UInt128, _ right: UInt128) -> Int {
        (left ^ right).leadingZeroBitCount
    }
}
