internal import ClientCore
internal import Foundation
internal import NetworkReachability
internal import OfflineQueue

/// Reads a `[[host]]` table.
struct HostTable {
    static let keys = [
        "name", "url", "tcp", "route", "expect-status", "http-version", "interval", "timeout", "fall", "rise",
    ]
    private static let checks = ["url", "tcp", "route"]

    private var entries: TableEntries
    var faults: [TableEntries.Fault] { entries.faults }

    /// The name, also of a host with other faults; `nil` if the name is a fault or unknown.
    private(set) var name: String?
    /// The host; `nil` if there are faults.
    private(set) var host: WatchedHost?

    init(_ entries: [(key: String, node: TOMLNode)], defaults: HostDefaults) {
        self.entries = TableEntries(entries, accepted: Self.keys)
        var settings = defaults
        readPace(into: &settings)
        let status = expectedStatus()
        self.entries.require("url", with: ["http-version"])
        let version: HTTPVersion? = self.entries.choice("http-version")
        let check = check(status)
        if case .web(let url, _)? = check { refuse(version, of: url) }
        name = readName(check)
        guard faults.isEmpty, let check, let name else { return }
        var host = WatchedHost(name: name, check: check, defaults: settings)
        host.httpVersion = version
        self.host = host
    }

    private mutating func refuse(_ version: HTTPVersion?, of url: String) {
        do throws(QueueError) {
            try RequestChecks.check(version, of: url)
        } catch {
            entries.report(error.message, at: "http-version")
        }
    }

    private mutating func readPace(into settings: inout HostDefaults) {
        settings.interval = entries.duration("interval", WatchedHost.acceptedIntervals) ?? settings.interval
        settings.timeout = entries.duration("timeout", WatchedHost.acceptedTimeouts) ?? settings.timeout
        settings.fall = entries.integer("fall", WatchedHost.acceptedThresholds) ?? settings.fall
        settings.rise = entries.integer("rise", WatchedHost.acceptedThresholds) ?? settings.rise
    }

    private mutating func expectedStatus() -> ClosedRange<Int>? {
        guard let value = entries["expect-status"] else { return 200...299 }
        entries.require("url", with: ["expect-status"])
        let bounds: [Int]
        switch value {
        case .integer(let status): bounds = [Int(clamping: status)]
        case .string(let text):
            bounds = text.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
        default: bounds = []
        }
        let isValid = (1...2).contains(bounds.count) && bounds.allSatisfy { (100...599).contains($0) }
        guard isValid, bounds[0] <= bounds[bounds.count - 1] else {
            entries.refuse(
                "expect-status",
                value,
                accepted: "a status like `204`, or statuses like `\"200-299\"`"
            )
            return nil
        }
        return bounds[0]...bounds[bounds.count - 1]
    }

    // MARK: The check

    private mutating func check(_ status: ClosedRange<Int>?) -> WatchedHost.Check? {
        guard let key = entries.only(of: Self.checks, in: "host"), let text = entries.text(key) else {
            return nil
        }
        switch key {
        case "url": return web(text, status ?? 200...299)
        case "tcp": return tcp(text)
        default: return networkHost(text, of: "route").map { .route($0) }
        }
    }

    private static let acceptedURLs = "an http or https URL without user name and password"

    private mutating func web(_ url: String, _ status: ClosedRange<Int>) -> WatchedHost.Check? {
        guard !url.isEmpty else {
            entries.refuse("url", .string(url), accepted: Self.acceptedURLs)
            return nil
        }
        guard URL.removingUserInfo(from: url) == url else {
            entries.report(
                "`url` contains a user name or password; remove it, because the status page, the history and the "
                    + "hooks show the URL",
                at: "url"
            )
            return nil
        }
        let check = WatchedHost.Check.web(url: url, expectedStatus: status)
        do {
            let host = WatchedHost(name: "", check: check)
            _ = try (host.networkHost, host.probe)
            return check
        } catch {
            refuse(url, "\(error)")
            return nil
        }
    }

    /// Reports a URL that cannot be probed. A malformed URL may contain a password, which the error would quote.
    private mutating func refuse(_ url: String, _ error: String) {
        let shown = RefusedText.withoutSecrets(url, isURL: true)
        guard shown != url else { return entries.report("`url`: \(error)", at: "url") }
        entries.refuse("url", .string(url), accepted: Self.acceptedURLs)
    }

    private mutating func tcp(_ text: String) -> WatchedHost.Check? {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]),
            port > 0
        else {
            entries.refuse(
                "tcp",
                .string(text),
                accepted: "a host and a port, like `db.example.com:5432`"
            )
            return nil
        }
        var host = text[..<colon]
        if host.first == "[", host.last == "]" { host = host.dropFirst().dropLast() }
        return networkHost(String(host), of: "tcp").map { .tcp($0, port: port) }
    }

    private mutating func networkHost(_ text: String, of key: String) -> NetworkHost? {
        do {
            return try NetworkHost(validating: text)
        } catch {
            // The error would quote the secrets of a URL.
            if RefusedText.withoutSecrets(text) == text {
                entries.report("`\(key)`: \(error)", at: key)
            } else {
                entries.refuse(key, .string(text), accepted: Origin.acceptedHosts(insteadOf: text))
            }
            return nil
        }
    }

    // MARK: The name

    /// - Parameter check: `nil` if it has a fault. There is then no default name.
    private mutating func readName(_ check: WatchedHost.Check?) -> String? {
        guard entries["name"] == nil else {
            return entries.text(
                "name",
                accepted: "1 to \(WatchedHost.longestName) letters, digits, `.`, `_`, `-` and `:`",
                where: WatchedHost.isValidName
            )
        }
        guard let check else { return nil }
        return defaultName(check)
    }

    /// The host of the URL, or the host and the port.
    private mutating func defaultName(_ check: WatchedHost.Check) -> String? {
        let name: String
        switch check {
        case .web: name = (try? WatchedHost(name: "", check: check).networkHost.text) ?? ""
        case .tcp(let host, let port): name = "\(host.text):\(port)"
        case .route(let host): name = host.text
        }
        if WatchedHost.isValidName(name) { return name }
        entries.report("the host needs a `name`, because its address is not a valid name")
        return nil
    }
}
