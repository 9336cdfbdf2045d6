internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetworkReachability

/// The hosts that a command is to watch, from its arguments and from a file. Either all of them are hosts,
/// or every one that is none is named.
struct HostList {
    /// How many hosts one command watches: as many as its tests start, each with its lookups.
    static let limit = 100_000
    /// Bytes of a list: room for as many of the longest names, 253 bytes each, with a comment here and there.
    static let longestFile = 32 * 1024 * 1024
    /// Bytes of a line, its comment included.
    static let longestLine = 4096

    private(set) var hosts: [NetworkHost] = []
    private var known: Set<NetworkHost> = []
    private var problems: [String] = []

    /// Takes arguments, and the file that `--hosts-from` names: `-` for standard input.
    ///
    /// - Throws: What is wrong, with every bad value named on standard error before.
    static func reading(_ arguments: [String], from file: String?) throws(CommandError) -> [NetworkHost] {
        var list = HostList()
        for argument in arguments { list.add(argument[...], at: nil) }
        if let file { try list.read(file) }
        try list.reportProblems()
        return list.hosts
    }

    private func reportProblems() throws(CommandError) {
        if hosts.count > Self.limit {
            throw CommandError(
                .usage,
                "\(hosts.count) hosts are too many; one command watches at most \(Self.limit)",
                hint: "split the list among several commands"
            )
        }
        guard let last = problems.last else { return }
        for problem in problems.dropLast() { Printer.error(problem) }
        throw CommandError(.usage, last, hint: "give \(NetworkHost.acceptedForms)")
    }

    private mutating func add(_ text: Substring, at place: String?) {
        guard let host = NetworkHost(String(text)) else {
            let value = Printer.quoted(text)
            let problem = "\(value) is not a host: \(HostRefusal.reason(for: String(text)))"
            problems.append((place.map { "\($0): " } ?? "") + problem)
            return
        }
        if known.insert(host).inserted { hosts.append(host) }
    }

    // MARK: Files

    private mutating func read(_ file: String) throws(CommandError) {
        let name = file == "-" ? "standard input" : file
        let bytes = try InputFile.read(file, limit: Self.longestFile)
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            add(line: line, at: "\(name):\(index + 1)")
        }
        if problems.isEmpty, hosts.isEmpty {
            throw CommandError(.usage, "`\(name)` names no host", hint: "write one host per line")
        }
    }

    /// Takes one line: a host, a comment after `#`, or nothing.
    private mutating func add(line: Data, at place: String) {
        guard line.count <= Self.longestLine else {
            return problems.append("\(place): the line is longer than \(Self.longestLine) bytes")
        }
        let content = line.prefix { $0 != UInt8(ascii: "#") }
        guard let text = String(validating: content, as: UTF8.self) else {
            return problems.append("\(place): the line is not UTF-8")
        }
        let host = text.trimmingCharacters(in: .whitespaces.union(.newlines))
        if !host.isEmpty { add(host[...], at: place) }
    }
}
