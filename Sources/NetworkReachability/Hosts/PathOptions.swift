public import NetwatchEventLoop

/// What is special about the packets whose way is asked for. Policy rules may send them elsewhere than
/// others; ask with what the connections will really use.
public struct PathOptions: Hashable, Sendable {
    /// The firewall mark (`SO_MARK`). Default `nil`: none. Asking needs no privilege; setting it on a socket
    /// does.
    public var mark: UInt32?

    /// The user who sends, for rules with `uidrange`. Default `nil`: this process's.
    public var userID: UInt32?

    /// The interface that packets have to leave by (`SO_BINDTODEVICE`), by name. Default `nil`: any. While
    /// there is none of that name, nothing is reachable. The zone of an address takes precedence.
    public var interface: String?

    /// The source address (`bind(2)`). Default `nil`: the kernel's choice. While no interface has it, nothing
    /// is reachable, nor is any address of the other family.
    public var source: IPAddress?

    /// Makes options of the defaults.
    public init() {}
}

/// Options that take no room where they are the defaults, as almost everywhere.
struct SparseOptions: Hashable, Sendable {
    private final class Box: Sendable {
        let options: PathOptions

        init(_ options: PathOptions) { self.options = options }
    }

    private let box: Box?

    init(_ options: PathOptions) {
        box = options == PathOptions() ? nil : Box(options)
    }

    var options: PathOptions { box?.options ?? PathOptions() }

    var areDefaults: Bool { box == nil }

    static func == (left: SparseOptions, right: SparseOptions) -> Bool {
        left.box?.options == right.box?.options
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(box?.options)
    }
}
