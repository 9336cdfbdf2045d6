internal import NetwatchTestSupport

/// A simulated directory of files, which loses unsynced data in a power cut.
///
/// It loses more than any real file system. Each unsynced write and each unsynced change of a name is kept or lost
/// independently of the others and of their order. A write may also be kept in part.
struct SimulatedDisk: Sendable {
    /// What a power cut does to unsynced changes.
    enum Loss: Sendable {
        /// All changes are lost.
        case worst
        /// Each change is kept or lost at random.
        case drawn(seed: UInt64)
    }

    private struct Write: Sendable {
        let offset: Int
        let bytes: [UInt8]

        func apply(to content: inout [UInt8], count: Int) {
            let missing = offset + count - content.count
            if missing > 0 { content += [UInt8](repeating: 0, count: missing) }
            content.withUnsafeMutableBytes { $0[offset...].copyBytes(from: bytes.prefix(count)) }
        }
    }

    private struct Node: Sendable {
        var durable: [UInt8] = []
        var current: [UInt8] = []
        var unsynced: [Write] = []
    }

    private enum Change: Sendable {
        case link(String, Int)
        case rename(String, String, Int)
        case unlink(String)

        func apply(to names: inout [String: Int]) {
            switch self {
            case .link(let name, let node): names[name] = node
            case .rename(let old, let new, let node): (names[old], names[new]) = (nil, node)
            case .unlink(let name): names[name] = nil
            }
        }
    }

    private var nodes: [Node] = []
    private var durableNames: [String: Int] = [:]
    private var currentNames: [String: Int] = [:]
    private var unsynced: [Change] = []

    // MARK: Names

    var names: [String] { Array(currentNames.keys) }

    func node(named name: String) -> Int? { currentNames[name] }

    mutating func create(_ name: String) -> Int {
        nodes.append(Node())
        change(.link(name, nodes.count - 1))
        return nodes.count - 1
    }

    mutating func rename(_ old: String, _ new: String, _ node: Int) { change(.rename(old, new, node)) }

    mutating func unlink(_ name: String) { change(.unlink(name)) }

    mutating func syncNames() {
        durableNames = currentNames
        unsynced = []
    }

    private mutating func change(_ change: Change) {
        change.apply(to: &currentNames)
        unsynced.append(change)
    }

    // MARK: Bytes

    var byteCount: Int { currentNames.values.reduce(0) { $0 + nodes[$1].current.count } }

    func content(of node: Int) -> [UInt8] { nodes[node].current }

    mutating func write(_ bytes: [UInt8], to node: Int, at offset: Int) {
        let write = Write(offset: offset, bytes: bytes)
        write.apply(to: &nodes[node].current, count: bytes.count)
        nodes[node].unsynced.append(write)
    }

    mutating func sync(_ node: Int) {
        for write in nodes[node].unsynced { write.apply(to: &nodes[node].durable, count: write.bytes.count) }
        nodes[node].unsynced = []
    }

    /// Simulates a failed sync on Linux: the data can still be read, but no later sync writes it.
    mutating func failSync(_ node: Int) {
        nodes[node].unsynced = []
    }

    /// Returns the content of the disk after a power cut.
    func afterPowerCut(_ loss: Loss) -> SimulatedDisk {
        var disk = self
        switch loss {
        case .worst: break
        case .drawn(let seed):
            var lots = SeededGenerator(seed: seed)
            for change in unsynced where Bool.random(using: &lots) { change.apply(to: &disk.durableNames) }
            for node in nodes.indices {
                for write in nodes[node].unsynced {
                    let count = [0, write.bytes.count, Int.random(in: 0...write.bytes.count, using: &lots)]
                    write.apply(to: &disk.nodes[node].durable, count: count.randomElement(using: &lots)!)
                }
            }
        }
        disk.currentNames = disk.durableNames
        disk.unsynced = []
        for node in nodes.indices {
            disk.nodes[node].current = disk.nodes[node].durable
            disk.nodes[node].unsynced = []
        }
        return disk
    }
}
