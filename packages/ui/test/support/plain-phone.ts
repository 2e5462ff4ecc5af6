/** What the phone of the README imports, for its size. */
// biome-ignore lint/performance/noBarrelFile: a bundle begins with it
export { CallProvider, CallStage, IncomingDialog, RestorableCalls, useCallUi } from '../../src/ui.ts'
