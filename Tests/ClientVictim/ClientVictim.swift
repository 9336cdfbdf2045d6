internal import Foundation
internal import Glibc

/// A process for what cannot be told of one that other tests run in: which descriptors and objects are left, how
/// much memory was needed.
///
/// What it says is a line each, and `done …` is the last one.
@main
package struct ClientVictim {
    package static func main() async {
        do {
            // Whoever waits for us may be gone.
            alarm(300)
            switch try ClientOrders(argument: CommandLine.arguments.last ?? "") {
            case .law(let orders): try await LawSeries(orders).run()
            case .hostile(let orders): try await HostileRun(orders).run()
            case .process(let orders): try await ProcessRun(orders).run()
            }
        } catch {
            say("failed \(error)")
            exit(1)
        }
    }

    static func say(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        write(STDOUT_FILENO, bytes, bytes.count)
    }
}
