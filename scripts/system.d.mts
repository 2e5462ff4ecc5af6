export type SystemPackage =
  | 'chromium'
  | 'chromium-tabs'
  | 'chromium-shell'
  | 'firefox'
  | 'xvfb'
  | 'coturn'
  | 'nginx'
  | 'haproxy'
  | 'postgresql'
  | 'redis'
  | 'prometheus'
  | 'promtool'
  | 'systemd'
  | 'busybox'
  | 'c-compiler'
  | 'php'
  | 'python3'
  | 'zsh'
  | 'pgbouncer'
  | 'fish'
export function findSystemProgram(name: SystemPackage): string | undefined
export function hasHeadlessShell(): boolean
export function requireSystem<Name extends SystemPackage>(names: readonly Name[]): Record<Name, string>
