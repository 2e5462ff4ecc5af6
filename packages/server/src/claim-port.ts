/** Throws where somebody else has the port. A listener that shares its port would not notice. */
export function claimPort(hostname: string, port: number): void {
  Bun.listen({ hostname, port, socket: { data() {} } }).stop(true)
}
