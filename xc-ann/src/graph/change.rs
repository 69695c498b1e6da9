//! Rows that come, go and move.

use crate::code::codes;
use crate::code::vertex_rows::{LAST, check_rows};
use crate::error::BuildError;
use crate::graph::build::{self, Linking};
use crate::graph::choose::{Shares, check_queries};
use crate::graph::drift_check::Judge;
use crate::graph::edges::NONE;
use crate::graph::refresh_policy::{Refresh, Refreshed};
use crate::graph::whole::Graph;
use crate::metric::Metric;
use crate::observe::BuildEvent;
use crate::search::visited::Visited;
use rayon::prelude::*;
use std::collections::HashSet;
use xc_buffer::{Observer, Silent};
use xc_dense::DenseRows;

/// Neighbours and neighbours of neighbours that are looked at.
const TWO_HOPS: usize = 400;

impl Graph {
    /// Adds rows: `new` are their numbers in `rows`, none of which the graph has. Each becomes a vertex
    /// of its own, even where it equals another.
    ///
    /// *Cost*: as a build for each row, and a copy of codes and edges for each call: many rows in one
    /// call are cheaper than one by one.
    ///
    /// # Errors
    /// Rows of another width, a row that no graph may have or that this one has, or it was cancelled; the graph is as
    /// before then.
    ///
    /// # Panics
    /// If `rows` lacks a row.
    pub fn insert(
        &mut self,
        rows: DenseRows<'_>,
        new: &[u32],
        observer: &dyn Observer<BuildEvent>,
    ) -> Result<(), BuildError> {
        let mut changed = self.clone();
        changed.add(rows, new, observer)?;
        changed.attach();
        *self = changed;
        Ok(())
    }

    /// Refuses rows of another width.
    pub(crate) fn check_width(&self, rows: DenseRows<'_>) -> Result<(), BuildError> {
        let (found, expected) = (rows.width(), self.dim());
        if found == expected { Ok(()) } else { Err(BuildError::Coordinates { found, expected }) }
    }

    fn add(&mut self, rows: DenseRows<'_>, new: &[u32], observer: &dyn Observer<BuildEvent>) -> Result<(), BuildError> {
        self.check_width(rows)?;
        let kept = check_rows(rows, new, self.params.metric)?;
        let mut set = HashSet::with_capacity(new.len());
        let twice = new.iter().copied().find(|&row| !set.insert(row));
        if let Some(row) = twice.or_else(|| self.items.vertices_of(&set).first().map(|pair| pair.1)) {
            return Err(BuildError::Present { row: row as usize });
        }
        if kept.is_empty() {
            return Ok(());
        }
        let n_before = self.codes.len();
        let was_empty = self.is_empty();
        let vertices = self.items.add(&kept);
        let (reused, appended) = vertices.iter().zip(&kept).partition::<Vec<_>, _>(|(v, _)| (**v as usize) < n_before);
        for (&vertex, &row) in reused {
            self.codes.replace(vertex as usize, rows.row(row as usize));
        }
        let appended: Vec<u32> = appended.into_iter().map(|(_, &row)| row).collect();
        self.codes.append(rows, &appended);
        self.edges.grow(self.codes.len());
        let mut order = vertices.clone();
        if was_empty {
            self.entry = order[0];
            order.remove(0);
        }
        let (entry, n_live) = (self.entry, self.items.len() - order.len());
        let passes = self.params.passes;
        observer.event(BuildEvent::Linking { n: passes * order.len() });
        for pass in 0..passes {
            let linking = Linking { keep: self.params.build_width, factor: self.factor(), again: pass > 0 };
            let mut batches = build::batches(order.len(), n_live.max(1), linking.again);
            build::link(&self.codes, &mut self.edges, &order, &mut batches, &|_| entry, linking, observer)?;
        }
        self.entry = self.best_entry();
        self.cells = self.cells.as_ref().map(|cells| cells.add(self.placed(rows), &vertices));
        Ok(())
    }

    /// Removes rows; unknown ids are ignored. Returns the number removed.
    ///
    /// Edges that led to a deleted vertex are replaced by the best of its own ones and of those that a
    /// short search finds. Its place is taken by the next row that is added.
    ///
    /// *Cost*: a look at all edges for each call, and a short search for each vertex that led to a deleted
    /// one.
    pub fn delete(&mut self, rows: &[u32]) -> usize {
        let pairs = self.items.vertices_of(&rows.iter().copied().collect());
        let (mut gone, n) = (vec![false; self.codes.len()], pairs.len());
        for (vertex, row) in pairs {
            self.items.remove(vertex, row);
            gone[vertex as usize] = !self.items.is_live(vertex);
        }
        if !gone.contains(&true) {
            return n;
        }
        self.cells.iter_mut().for_each(|cells| cells.remove(|vertex| gone[vertex as usize]));
        let edges = self.edges.view();
        let leads = |&vertex: &u32| !gone[vertex as usize] && edges.of(vertex).iter().any(|&to| gone[to as usize]);
        let touched: Vec<u32> = (0..gone.len() as u32).into_par_iter().filter(leads).collect();
        let list = |vertex: u32, _: &mut Visited, to: &mut Vec<u32>| {
            for &next in edges.of(vertex) {
                if gone[next as usize] {
                    to.extend(edges.of(next).iter().filter(|&&v| !gone[v as usize]));
                } else {
                    to.push(next);
                }
            }
        };
        let changed = build::relink(&self.codes, &self.edges, &touched, self.factor(), &list);
        let degree = self.edges.degree();
        self.edges.set_all(touched.iter().copied().zip(changed.chunks_exact(degree)));
        (0..gone.len()).filter(|&v| gone[v]).for_each(|vertex| self.edges.set(vertex as u32, &[]));
        if gone[self.entry as usize] {
            self.entry = self.best_entry();
        }
        // The neighbours of neighbours are not all that a vertex needs in the place of those that are gone.
        let searched = self.search_again(&touched, Refresh::SHORT_KEEPS, &Silent);
        searched.unwrap_or_else(|e| panic!("nobody asked it to stop: {e}"));
        self.attach();
        n
    }

    /// New codes of some rows that moved: row `i` of `rows` is what row `moved[i]` of the graph has
    /// become. Answers follow at once, edges and cells with the next [`Graph::refresh`]. Rows that the graph does
    /// not have are passed over, and so are, until the refresh, those that were equal to another one.
    ///
    /// *Cost*: some 50 ns a row of 128 coordinates; of the first call after rows came or went a pass over
    /// all of them, and a copy of the codes where a clone of the graph has them too.
    ///
    /// # Errors
    /// Rows of another width, or a row that no graph may have; the graph is as before then.
    ///
    /// # Panics
    /// If there is not a row for each that moved.
    pub fn recode(&mut self, moved: &[u32], rows: DenseRows<'_>) -> Result<(), BuildError> {
        self.check_width(rows)?;
        assert_eq!(rows.len(), moved.len(), "rows, and their numbers");
        let all: Vec<u32> = (0..moved.len() as u32).collect();
        let kept = check_rows(rows, &all, self.params.metric).map_err(|error| match error {
            BuildError::Row { row } => BuildError::Row { row: moved[row] as usize },
            other => other,
        })?;
        let vertex_of = self.items.vertex_of();
        let is_alone = |vertex: &u32| self.items.rows(*vertex).nth(1).is_none();
        let vertex = |at: &u32| vertex_of.get(moved[*at as usize] as usize).copied().filter(|&vertex| vertex != LAST);
        let found = kept.iter().filter_map(|at| vertex(at).filter(is_alone).map(|vertex| (vertex, *at)));
        let found: Vec<(u32, u32)> = found.collect();
        self.codes.replace_some(found.iter().map(|&(vertex, at)| (vertex as usize, rows.row(at as usize))));
        self.is_behind |= !found.is_empty();
        if let Some(cells) = &mut self.cells {
            cells.recode(&self.codes, &found.iter().map(|pair| pair.0).collect());
        }
        Ok(())
    }

    /// Follows rows that moved: new codes, and edges as the policy says; without one the cheapest that
    /// finds as much as it should. Zero drift changes nothing.
    ///
    /// The policies are passes over the old graph, whose rows are written together: they do not depend
    /// on the number of threads. With `queries` the search width is fitted again, edges are made for
    /// them, as [`Graph::build_for`] does, and what is found is counted with them; the policies keep edges among
    /// near rows alone.
    ///
    /// # Errors
    /// Rows or queries of another width, a row that no graph may have, or it was cancelled; the graph is as before then.
    ///
    /// # Panics
    /// If `rows` lacks a row.
    pub fn refresh(
        &mut self,
        rows: DenseRows<'_>,
        queries: Option<DenseRows<'_>>,
        policy: Option<Refresh>,
        observer: &dyn Observer<BuildEvent>,
    ) -> Result<Refreshed, BuildError> {
        self.check_width(rows)?;
        check_queries(queries, self.dim())?;
        let mut changed = self.clone();
        let cells = changed.cells.take();
        let moved = changed.encode_again(rows, observer)? || changed.is_behind;
        changed.is_behind = false;
        let queries = Shares::new(queries, self.params.metric);
        let judge = Judge::new(&changed, rows, queries.fit)?;
        let before = judge.share(&changed, rows);
        if !moved {
            changed.cells = cells;
            let Self { cells, items, .. } = &mut changed;
            cells.iter_mut().for_each(|cells| cells.remove(|vertex| !items.is_live(vertex)));
            *self = changed;
            return Ok(Refreshed { policy: policy.unwrap_or(Refresh::Codes), before, after: before });
        }
        let answers = queries.link.map(|link| changed.answers_of(rows, link));
        // Small losses come back with a short search, larger ones need more.
        let in_turn = [Refresh::Codes, Refresh::SHORT, Refresh::TwoHops, Refresh::Rebuild];
        let policies = policy.as_ref().map_or(&in_turn[..], std::slice::from_ref);
        let mut done = Refreshed { policy: Refresh::Codes, before, after: before };
        for &policy in policies {
            if policy != policies[0] && judge.is_enough(done.after, policy) {
                break;
            }
            changed.repair(rows, policy, observer)?;
            if let Some(answers) = &answers {
                changed.link_answers(answers);
                changed.attach();
            }
            // New codes alone were judged already.
            let is_judged = policy == Refresh::Codes && answers.is_none();
            let after = if is_judged { before } else { judge.share(&changed, rows) };
            done = Refreshed { policy, before, after };
        }
        changed.found_itself = if judge.asks() { changed.recall_of_itself(rows) } else { done.after };
        changed.cells = match cells {
            Some(cells) => cells.follow(changed.placed(rows), self.params.seed, observer)?,
            None => None,
        };
        if let Some(fit) = queries.fit {
            changed.fit_unless(rows, fit, self.params.top_k, self.params.target_recall, observer)?;
        }
        *self = changed;
        Ok(done)
    }

    /// New codes. Says whether any changed.
    fn encode_again(&mut self, rows: DenseRows<'_>, observer: &dyn Observer<BuildEvent>) -> Result<bool, BuildError> {
        // Rows that were equal may differ now.
        let apart: Vec<(u32, u32)> = (0..self.codes.len() as u32)
            .filter(|&vertex| self.items.is_live(vertex))
            .flat_map(|vertex| {
                let first = rows.row(self.items.first()[vertex as usize] as usize);
                let differs = |&row: &u32| rows.row(row as usize) != first;
                self.items.rows(vertex).filter(differs).map(|row| (vertex, row)).collect::<Vec<_>>()
            })
            .collect();
        apart.iter().for_each(|&(vertex, row)| self.items.remove(vertex, row));
        let live: Vec<u32> = self.items.first().iter().copied().filter(|&row| row != LAST).collect();
        let kept = check_rows(rows, &live, self.params.metric)?;
        if kept.len() < live.len() {
            let kept_set: HashSet<u32> = kept.into_iter().collect();
            let is_zero =
                |vertex: &u32| self.items.is_live(*vertex) && !kept_set.contains(&self.items.first()[*vertex as usize]);
            let zeros: Vec<u32> =
                (0..self.codes.len() as u32).filter(is_zero).flat_map(|vertex| self.items.rows(vertex)).collect();
            self.delete(&zeros);
        }
        let old = (self.codes.bytes.clone(), self.codes.sides.clone());
        self.codes.encode(rows, self.items.first());
        let moved = old.0[..] != self.codes.bytes[..] || old.1[..] != self.codes.sides[..];
        if moved {
            // What all rows have in common moves with them.
            self.codes.mean = codes::mean_of(rows, &self.live_rows(), self.params.metric).into();
            self.codes.encode(rows, self.items.first());
        }
        let split: Vec<u32> = apart.iter().map(|pair| pair.1).collect();
        self.add(rows, &split, observer)?;
        Ok(moved || !split.is_empty())
    }

    fn repair(
        &mut self,
        rows: DenseRows<'_>,
        policy: Refresh,
        observer: &dyn Observer<BuildEvent>,
    ) -> Result<(), BuildError> {
        let live: Vec<u32> = (0..self.codes.len() as u32).filter(|&v| self.items.is_live(v)).collect();
        match policy {
            Refresh::Codes => return Ok(()),
            Refresh::Search(keep) => self.search_again(&live, keep, observer)?,
            Refresh::TwoHops => self.two_hops(&live),
            Refresh::Both => {
                self.two_hops(&live);
                self.search_again(&live, Refresh::SHORT_KEEPS, observer)?;
            }
            Refresh::Rebuild => {
                let fitted = self.fitted;
                *self = Self::linked(rows, &self.live_rows(), &self.params, None, observer)?;
                self.fitted = fitted;
                return Ok(());
            }
        }
        self.entry = self.best_entry();
        self.attach();
        Ok(())
    }

    fn search_again(
        &mut self,
        live: &[u32],
        keep: usize,
        observer: &dyn Observer<BuildEvent>,
    ) -> Result<(), BuildError> {
        let linking = Linking { keep, factor: self.factor(), again: true };
        observer.event(BuildEvent::Linking { n: live.len() });
        let mut all = std::iter::once(0..live.len());
        // The largest inner products are with rows near the entry, small distances with those nearby.
        let (entry, is_near) = (self.entry, self.params.metric != Metric::InnerProduct);
        let from = |vertex: u32| if is_near { vertex } else { entry };
        build::link(&self.codes, &mut self.edges, live, &mut all, &from, linking, observer)
    }

    fn two_hops(&mut self, live: &[u32]) {
        let edges = self.edges.view();
        // Neighbours, then the first neighbour of each, the second, and so on: nearer ones come first.
        let list = |vertex: u32, visited: &mut Visited, to: &mut Vec<u32>| {
            visited.insert(vertex);
            let own = edges.of(vertex);
            to.extend(own.iter().filter(|&&next| visited.insert(next)));
            for turn in 0..self.params.max_degree {
                for &next in own {
                    if to.len() >= TWO_HOPS {
                        return;
                    }
                    let further = edges.row(next)[turn];
                    if further != NONE && visited.insert(further) {
                        to.push(further);
                    }
                }
            }
        };
        let rows = build::relink(&self.codes, &self.edges, live, self.factor(), &list);
        let factor = self.factor();
        build::write(&self.codes, &mut self.edges, live, &rows, factor);
    }
}
