export interface Measured {
  who: string;
  one: number[];
  many: number[];
  start: number[];
  perSecondOne: number;
  perSecondMany: number;
  answerBytes?: number;
}
export interface Goal {
  goal: string;
  reached: boolean | null;
  found: string;
}
export declare const quantile: (times: readonly number[], q: number) => number;
export declare const median: (times: readonly number[]) => number;
export declare const goalsOf: (measured: { bare: Measured; ours: Measured; stock?: Measured }) => Goal[];
export declare const tableOf: (measured: Record<string, Measured>) => string;
export declare const goalTableOf: (goals: readonly Goal[]) => string;
export declare const pageOf: (page: { facts: string; table: string; goals: readonly Goal[]; skipped: string | null }) => string;
