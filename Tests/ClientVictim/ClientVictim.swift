internal import Foundation
internal import Glibc

/// A separate process for measurements that are process-wide: open descriptors, leaked objects, memory use.
///
/// It prints one line per event. The last line is `done …`.
@main
package struct ClientVictim {
    package static func main() async {
        do {
            // The parent may have exited, so limit the lifetime to 300 s.
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
