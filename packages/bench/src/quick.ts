/**
 * `--quick`: the same measurements with a twentieth of the clients, calls and time. It shows that they work, and that no server
 * lost a message; its figures say nothing.
 */
export const isQuick = process.argv.includes('--quick')

/** So many, or a twentieth of that. */
export const sized = (usual: number): number => (isQuick ? Math.ceil(usual / 20) : usual)
