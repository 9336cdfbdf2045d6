internal import Foundation
internal import NetwatchService

/// The state of the service's unit, as systemd reports it.
struct UnitState: Equatable {
    /// The property `ActiveState`, such as `inactive`.
    let activity: String
    /// The property `Result` of the last run, such as `exit-code`.
    let result: String

    /// Whether the unit has failed, or waits for a restart after a failure.
    var hasFailed: Bool { ["failed", "activating"].contains(activity) && result != "success" }

    /// Parses lines such as `ActiveState=failed`. `nil` if a property is missing.
    init?(properties: String) {
        let pairs = properties.split(separator: "\n").map { $0.split(separator: "=", maxSplits: 1) }
        func value(_ name: String) -> String? {
            pairs.first { $0.count == 2 && $0[0] == name }.map { String($0[1]) }
        }
        guard let activity = value("ActiveState"), let result = value("Result") else { return nil }
        self.activity = activity
        self.result = result
    }

    /// Prints the two properties. env(1) searches for systemctl(1) in `PATH`.
    private static let command = [
        "/usr/bin/env", "systemctl", "show", "--property=ActiveState,Result", SystemUnit.name,
    ]

    /// Queries systemd for the state of ``SystemUnit``.
    ///
    /// - Parameters:
    ///   - command: The path of a program that prints the two properties, and its arguments. Default: systemctl(1).
    ///   - timeout: When the program receives SIGTERM. The query ends at most 2 s later. Default: 5 s.
    /// - Returns: `nil` if the command fails, for example because systemd does not run.
    static func query(
        _ command: [String] = Self.command,
        timeout: Duration = .seconds(5)
    ) async -> UnitState? {
        let output = await ChildProcess.output(
            of: command,
            environment: ProcessInfo.processInfo.environment,
            timeout: timeout
        )
        return output.flatMap { UnitState(properties: String(decoding: $0, as: UTF8.self)) }
    }
}
