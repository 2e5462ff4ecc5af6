// biome-ignore-all lint/performance/noBarrelFile: the one face of the package
'use client'

/** React components for calls. They need no CSS framework; `ui.css` has what they look like. */
export { CallControls, type CallControlsProps } from './call-controls.tsx'
export { CallStage, type CallStageProps } from './call-stage.tsx'
export { CallTimer, type CallTimerProps } from './call-timer.tsx'
export { CallTones, type CallTonesProps } from './call-tones.tsx'
export { DeviceMenu, type DeviceMenuProps } from './device-menu.tsx'
export { DevicePreview } from './device-preview.tsx'
export { IncomingDialog } from './incoming-dialog.tsx'
export type { EndedCall, Phase } from './line-state.ts'
export type { PartProps } from './part.ts'
export { PeerTile } from './peer-tile.tsx'
export { CallProvider, type CallProviderProps, type CallUi, useCallUi } from './provider.tsx'
export { RestorableCalls } from './restorable-calls.tsx'
export { SecurityCode } from './security-code.tsx'
export { SelfView } from './self-view.tsx'
export { english, errorText, type Words } from './words.ts'
