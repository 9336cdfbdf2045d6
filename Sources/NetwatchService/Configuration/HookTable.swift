internal import OfflineQueue

/// Reads a `[[hook]]` table.
struct HookTable {
    static let keys = [
        "webhook", "credential", "program", "arguments", "timeout", "hosts", "on", "causes", "group-wait",
    ]
    private static let actions = ["webhook", "program"]

    private var entries: TableEntries
    var faults: [TableEntries.Fault] { entries.faults }

    /// The hook; `nil` if there are faults.
    private(set) var hook: Hook?

    /// - Parameter hosts: The names of the configured hosts.
    init(_ entries: [(key: String, node: TOMLNode)], hosts: Set<String>) {
        self.entries = TableEntries(entries, accepted: Self.keys)
        let action = action()
        let names = names(among: hosts)
        let events: Set<Hook.Event>? = self.entries.choices("on")
        let causes: Set<OutageCause>? = self.entries.choices("causes")
        let groupWait = self.entries.duration("group-wait", Hook.acceptedGroupWaits)
        guard faults.isEmpty, let action else { return }
        var hook = Hook(action)
        hook.hosts = names
        hook.events = events ?? hook.events
        hook.causes = causes ?? hook.causes
        hook.groupWait = groupWait ?? hook.groupWait
        self.hook = hook
    }

    // MARK: The action

    private mutating func action() -> Hook.Action? {
        let key = entries.only(of: Self.actions, in: "hook")
        let webhook = webhook(), program = program()
        guard key != nil else { return nil }
        return webhook.map(Hook.Action.webhook) ?? program.map(Hook.Action.program)
    }

    private mutating func webhook() -> Webhook? {
        entries.require("webhook", with: ["credential"])
        let credential = entries.text("credential")
        guard let url = entries.text("webhook") else { return nil }
        do throws(QueueError) {
            try RequestChecks.check(Webhook(url: url))
        } catch {
            entries.report("\(error)", at: "webhook")
        }
        guard let credential else { return Webhook(url: url) }
        do throws(QueueError) {
            try CredentialName.check(credential)
        } catch {
            entries.report("\(error)", at: "credential")
        }
        return Webhook(url: url, credential: credential)
    }

    private mutating func program() -> HookProgram? {
        entries.require("program", with: ["arguments", "timeout"])
        let path = entries.text("program", accepted: "an absolute path") {
            $0.hasPrefix("/") && Self.isArgument($0)
        }
        let arguments = entries.texts("arguments", accepted: "an array of strings without NUL characters") {
            $0.allSatisfy(Self.isArgument)
        }
        let timeout = entries.duration("timeout", HookProgram.acceptedTimeouts)
        guard let path else { return nil }
        var program = HookProgram(path: path)
        program.arguments = arguments ?? program.arguments
        program.timeout = timeout ?? program.timeout
        return program
    }

    /// Whether a program can receive the text: the kernel ends arguments at NUL.
    private static func isArgument(_ text: String) -> Bool { !text.utf8.contains(0) }

    // MARK: The hosts

    private mutating func names(among hosts: Set<String>) -> Set<String>? {
        let names = entries.texts("hosts", accepted: "an array of names of hosts") { !$0.isEmpty }
        for name in names ?? [] where !hosts.contains(name) {
            let hint = Self.hint(for: name, among: hosts.sorted())
            let shown = RefusedText.withoutSecrets(name)
            entries.report("`hosts`: there is no host with the name `\(shown)`; \(hint)", at: "hosts")
        }
        return names.map { Set($0) }
    }

    /// The maximum number of hosts in a message.
    private static let mostNames = 10

    private static func hint(for name: String, among hosts: [String]) -> String {
        if let similar = NameSuggestion.name(for: name, among: hosts) { return "did you mean `\(similar)`?" }
        guard !hosts.isEmpty else { return "add a `[[host]]` with this name" }
        let names = hosts.prefix(mostNames).map { "`\($0)`" }.joined(separator: ", ")
        return "accepted: \(names)" + (hosts.count > mostNames ? " and \(hosts.count - mostNames) more" : "")
    }
}
