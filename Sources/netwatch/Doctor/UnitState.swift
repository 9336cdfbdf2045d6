internal import Glibc

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

    /// Queries systemd for the state of ``SystemUnit``. Blocks for at most 6 s.
    ///
    /// - Parameter command: A program with its arguments, for a shell, that prints the two properties.
    /// - Returns: `nil` if the command fails, for example because systemd does not run.
    static func query(
        _ command: String = "systemctl show --property=ActiveState,Result \(SystemUnit.name)"
    ) -> UnitState? {
        guard let pipe = popen("timeout -k 1 5 \(command) 2>/dev/null", "re") else { return nil }
        var output: [UInt8] = []
        var byte = fgetc(pipe)
        while byte != EOF {
            output.append(UInt8(byte))
            byte = fgetc(pipe)
        }
        return pclose(pipe) == 0 ? UnitState(properties: String(decoding: output, as: UTF8.self)) : nil
    }
}
