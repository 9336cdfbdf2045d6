/// Watches: the states of the gates that the scheduler wants to know.
extension OfflineQueue {
    /// A watch of an endpoint's gate.
    struct EndpointWatch {
        /// A number that no other watch has. States of earlier watches of the endpoint are ignored.
        let number: UInt64
        /// `nil` if the state never changes.
        let watch: (any GateWatch)?

        func end() { watch?.cancel() }
    }

    func watch(_ endpoint: Endpoint) {
        lastWatch += 1
        let watch = gate.watch(endpoint) { [gateChanges, number = lastWatch] state in
            gateChanges.post(GateChanges.Change(endpoint: endpoint, watch: number, state: state))
        }
        watches[endpoint] = EndpointWatch(number: lastWatch, watch: watch)
    }

    /// Passes the states of all gates to the scheduler, until the queue stops.
    func followGates() async {
        while phase == .running {
            let changes = await gateChanges.next()
            guard !changes.isEmpty else { return }
            for change in changes { gateChanged(change) }
        }
    }

    private func gateChanged(_ change: GateChanges.Change) {
        guard phase == .running, watches[change.endpoint]?.number == change.watch else { return }
        handle(.gate(change.endpoint, change.state))
    }
}
